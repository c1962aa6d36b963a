"""Each sentence about a result says the contrary of numbers that contradict it."""

import pytest

from benchmarks.commands.bound import Parts
from benchmarks.tour import stories
from benchmarks.tour.sentences import SENTENCES, Ratio, duration, percent, times_as

FASTER, SLOWER, EQUAL, UNSURE = Ratio(1.4, 1.3, 1.5), Ratio(0.5, 0.4, 0.6), Ratio(1.02, 1.01, 1.03), Ratio(1.5, 0.9, 2.1)
DECODING, REST = Parts(0, 3e-3, 0, 1e-4, 1e-3), Parts(0, 1e-3, 0, 1e-4, 5e-3)
# Of each sentence: arguments, and words that it then has.
SAID = {
    "gain": [
        (("Compiling it", FASTER), "Compiling it made it 1.4 times as fast (1.3 to 1.5)."),
        (("Compiling it", SLOWER), "made it slower: 2.0 times the time (speed 0.40 to 0.60)"),
        (("Compiling it unchanged", EQUAL), "gained nothing that shows: 1.02 times the speed (1.01 to 1.03)"),
        (("Compiling it", UNSURE), "gained nothing that shows: 1.5 times"),
    ],
    "compared": [
        (("A", "B", FASTER), "A is 1.4 times as fast as B (1.3 to 1.5)."),
        (("A", "B", SLOWER), "A is slower than B: it takes 2.0 times as long"),
        (("A", "B", EQUAL), "A and B do not differ beyond the spread"),
    ],
    "gap": [
        (("A", "B", ("7", 3.0), ("64", 90.0)), "3.0 times as fast as B at 7 and 90 times at 64: the gap grows"),
        (("A", "B", ("7", 90.0), ("64", 3.0)), "the gap shrinks"),
        (("A", "B", ("7", 3.0), ("64", 3.1)), "hardly depends"),
    ],
    "laying_out": [((0.98,), "takes 98 % of the time: the preparation is dear"), ((0.3,), "takes only 30 %")],
    "helpers": [((0.25, 0.15), "They are what to change first"), ((0.05, 0.04), "would gain little")],
    "slowed": [((1.8,), "takes 1.8 times as long"), ((1.02,), "takes no longer (1.02 times)")],
    "sampled": [
        ((0.25, 200, 46), "both profilers agree"),
        ((0.45, 200, 40), "counting gives it more than sampling"),
        ((0.10, 200, 60), "sampling gives it more than counting"),
    ],
    "agree": [(({"a": 1.0, "b": 1.03},), "The 2 clocks agree within 3.0 %"), (({"a": 1.0, "b": 1.5},), "50 %, from a to b")],
    "waited": [(("A", 0.5), "by up to 2.0 times"), (("A", 0.02), "no reader, however fast, would gain more than 1.02")],
    "trained": [
        (("A", "B", (2.0, 1.0), (0.8, 0.8)), "Training with B takes 0.50 times as long as with A and names as many"),
        (("A", "B", (1.0, 2.0), (0.8, 0.9)), "2.0 times as long as with A; B names more"),
        (("A", "B", (1.0, 2.0), (0.9, 0.8)), "A names more"),
    ],
    "named": [
        (({"update": 0.6, "products": 0.3},), "Most of a step is update: 60 %, as in the post (59 %)"),
        (({"update": 0.3, "products": 0.6},), "Most of a step is products: 60 %, and not the update (30 %"),
    ],
    "reach": [
        ((0.5, 2.4), "also shortens what is not the update"),
        ((0.5, 1.9), "little of the update is left"),
        ((0.5, 1.1), "a good part of the update is left"),
    ],
    "memory_bound": [
        (("A", 1.1, 1.0), "bound by memory"),
        (("A", 4.0, 1.0), "more passes than one"),
        (("A", 0.5, 1.0), "memory is not what bounds it"),
    ],
    "decoding": [((0.8,), "most of the time cannot gain"), ((0.3,), "most of the time is in what batches and fusion can")],
    "speed_of_light": [
        (("A", DECODING), "bound by decoding: twice as fast in that alone, it would be 1.6 times as fast."),
        (("A", REST), "bound by none of disk, decoding, arithmetic and memory: 82 % of its time"),
        (("A", Parts(*[1e-4] * 5)), "bound by disk: twice as fast in that alone, it would be 1.11"),
    ],
    "with_device": [
        (("A", DECODING), "1.4 times as fast: not worth"),
        (("A", REST), "6.1 times as fast, less what transfers cost"),
    ],
    "transfers": [(("A", 2e-3, 1e-3), "little arithmetic for much moving"), (("A", 1e-3, 2e-3), "worth the way")],
    "unshifted": [((0.18,), "by 18 % of its range: the wrong picture"), ((0.001,), "one would not see the mistake")],
    "whole": [
        ((0.1, 0.004, 0.004), "6,250 times the built-in's"),
        ((1.0, 0.1, 0.1), "less of a difference than in the post"),
    ],
    "strided": [(("A", 0.27), "little that is thrown away"), (("A", 1.01), "does not depend on how many outputs")],
    "slower": [
        (("A", "B", 3.2), "3.2 times as long as with B (the post's own layer: about 2 times)"),
        (("A", "B", 0.8), "no slower here (the post"),
    ],
    "accuracy": [
        (("A", "B", (-0.003, 0.001)), "is -0.3 to +0.1 points from that with B"),
        (("A", "B", (-0.003, 0.001)), "may be chance"),
        (("A", "B", (0.002, 0.004)), "B: more than chance"),
        (("A", "B", (0.0, 0.0)), "is that with B from every start"),
        (("A", "B", None), "One start cannot say"),
    ],
}


def test_every_sentence_is_contradicted():
    assert stories.STORIES  # which imports all of them
    assert SAID.keys() == SENTENCES.keys()
    assert all(len({words for _, words in cases}) > 1 for cases in SAID.values())


@pytest.mark.parametrize(("name", "arguments", "words"), [(name, *case) for name, cases in SAID.items() for case in cases])
def test_a_sentence_follows_its_numbers(name, arguments, words):
    said = SENTENCES[name](*arguments)
    assert words in said
    assert said.endswith(".")
    assert all(other not in said for _, other in SAID[name] if other != words and arguments != _)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        *[(times_as, *each) for each in ((0.021, "0.021"), (0.98, "0.98"), (1.2, "1.2"), (9.96, "10"), (1234.5, "1,234"))],
        *[(duration, *each) for each in ((0, "0"), (3.24e-3, "3.24 ms"), (0.9996, "1.00 s"), (0.5e-6, "0.500 us"))],
        *[(duration, *each) for each in ((722e-3, "722 ms"), (1230, "1,230 s"))],
        *[(percent, *each) for each in ((0.0123, "1.2 %"), (0.0999, "10 %"), (0.5, "50 %"))],
    ],
)
def test_numbers_have_few_digits(function, value, text):
    assert function(value) == text
