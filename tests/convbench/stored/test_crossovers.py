"""From which value of an axis on another kind wins: only where the two differ beyond their quartiles on both sides."""

import pytest
from shown_cells import cell, frame

from convbench.stored import crossovers

FAMILIES = {"cpu.direct": "direct", "cpu.tiled": "direct", "cpu.fft": "fft", "cpu.mine": "", "cpu.auto": "auto"}


def sweep(values, benchmark="conv2d.Size.time_conv2d", spread=0.02, **times):
    """Cells of one benchmark: for each implementation its times in ms at the values of the axis."""
    return [
        cell(f"cpu.{name}", (value,), ms and ms * 1e-3, spread, benchmark=benchmark, family=FAMILIES[f"cpu.{name}"])
        for name, measured in times.items()
        for value, ms in zip(values, measured, strict=True)
    ]


SIZES = ("7x7", "31x31", "256x256")


@pytest.mark.parametrize(
    ("values", "times", "words"),
    [
        (SIZES, {"direct": (1, 3, 90), "fft": (2, 2, 9)}, "direct wins up to 7x7, fft from 31x31"),
        (SIZES[::-1], {"direct": (90, 3, 1), "fft": (9, 2, 2)}, "direct wins up to 7x7, fft from 31x31"),
        (("1", "3", "15"), {"direct": (1, 3, 90), "mine": (2, 2, 9)}, "direct wins up to 1, cpu.mine from 3"),
        # Alike at 31x31, within the quartiles.
        (SIZES, {"direct": (1, 2.02, 90), "fft": (2, 2, 9)}, "direct wins up to 7x7, fft from 256x256"),
        (SIZES, {"direct": (1, 2, 2.02), "fft": (2, 2.02, 2)}, None),
        (SIZES, {"direct": (2, 3, 4), "fft": (2.02, 2, 2)}, None),
        # And back.
        (SIZES, {"direct": (1, 3, 4), "fft": (2, 2, 9)}, "direct wins up to 7x7, fft from 31x31, direct from 256x256"),
        # The best of each family counts, "auto" does not.
        (SIZES, {"direct": (1, 9, 90), "tiled": (9, 1, 1), "fft": (2, 2, 2)}, None),
        (SIZES, {"direct": (2, 2, 2), "auto": (1, 3, 1)}, None),
        # The new winner has no time on the other side.
        (SIZES, {"direct": (1, 3, 90), "fft": (None, 2, 9)}, None),
        (SIZES[:2], {"direct": (1, 3), "fft": (2, 2)}, None),
        (("a", "b", "c"), {"direct": (1, 3, 90), "fft": (2, 2, 9)}, None),
    ],
)  # fmt: skip
def test_a_crossover_in_words(values, times, words):
    found = crossovers.sentences(frame(sweep(values, **times)))
    assert found == ([f"conv2d.Size: {words}"] if words else [])


def test_without_quartiles_nothing_is_claimed():
    assert crossovers.sentences(frame(sweep(SIZES, spread=None, direct=(1, 3, 90), fft=(2, 2, 9)))) == []


def test_two_parameters_are_no_axis():
    cells = [{**one, "row": (*one["row"], "1")} for one in sweep(SIZES, direct=(1, 3, 90), fft=(2, 2, 9))]
    assert crossovers.sentences(frame(cells)) == []


def test_a_few_lines_are_enough():
    cells = [one for i in range(9) for one in sweep(SIZES, f"a.B{i}.time_c", direct=(1, 3, 90), fft=(2, 2, 9))]
    assert len(crossovers.sentences(frame(cells))) == crossovers.MAX_SENTENCES


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1", "8"], {"1": 1, "8": 8}),
        (["4x4", "2x8"], {"4x4": 4, "2x8": 4}),
        (["1", "2", "all"], {"1": 1, "2": 2}),
        (["0.5", "1.5"], {"0.5": 0.5, "1.5": 1.5}),
        (["3"], None),
        (["a", "b"], None),
        (["1", "b"], None),
        (["0", "1"], None),
        (["n1c1h7", "n1c1h8"], None),
        ([], None),
    ],
)
def test_what_is_a_quantity(values, numbers):
    assert crossovers.quantities(values) == numbers
