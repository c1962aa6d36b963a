"""Goals are compared with medians, and a row that lacks a time is not judged."""

import math
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest
from goal_lines import FAILED, SKIPPED, line, row, times
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.harness.cell import kind
from benchmarks.workloads.problems import load_set
from benchmarks.workloads.random_problems import generate
from convbench.speed import goals
from convbench.speed.goals import Goal, Goals, Overall

ROOT = Path(__file__).parents[3]
GOLDEN = Path(__file__).parents[2] / "golden" / "speed.md"


# benchmarks/commands/speed.toml

OURS = goals.load(ROOT / "benchmarks" / "commands" / "speed.toml")
ROWS = {row.name: row for row in OURS.rows}
PICKED = [name for name in ROWS if name.startswith("auto: ")]
SETS = ("filters", "mnist", "resnet50", "vgg16", "mobilenet", "deepbench")
SIZES = [(512, 512), (1024, 1024), (1080, 1920), (2048, 2048), (2160, 3840), (4096, 4096)]
RESNET, VGG, MOBILENET = (list(load_set(name).values()) for name in ("resnet50", "vgg16", "mobilenet"))


def filters(sizes, kernels):
    return {f"n1c1h{h}w{w}k1r{r}s{r}p{r // 2}" for h, w in sizes for r in kernels}


def labels(problems):
    return {problem.label for problem in problems}


def test_the_rows_hold_the_problems_they_are_named_for():
    """The file spells out the layers of a network; this is the rule that selects them."""
    deep = labels(p for p in RESNET + VGG if (p.r, p.stride) == (3, 1) and p.c >= 64)
    expected = {
        "images": filters(SIZES, (3, 5, 7)),
        "large filters": filters([(n, n) for n in (512, 1024, 2048)], (15, 31)),
        "few channels": {"n1c3h1080w1920k3r3s3p1", "n1000c1h28w28k3r3s3"},
        "winograd": deep | {"n8" + label.removeprefix("n1") for label in deep},
        "exact layers": labels(p for p in RESNET if (p.r, p.stride) != (3, 1)),
        "depthwise": labels(p for p in MOBILENET if p.groups > 1),
        "adam step": {"n100000", "n1796010", "n4231976", "n25557032"},
        "read batch": {f"n{n}b13h64w64" for n in (1, 32, 64, 1024)},
        "train step": {"convolutional-n100", "convolutional-n1000", "perceptron-n100"},
        "preprocess": {
            *(f"n{n}h480w640y120x160s128" for n in (1, 4, 16)),
            *(f"n1h1080w1920y{1080 // k}x{1920 // k}s256" for k in (1, 2)),
        },
        **{f"auto: {name}": labels(load_set(name).values()) for name in SETS},
    }
    assert {name: set(row.problems) for name, row in ROWS.items() if name != "auto: random"} == expected
    assert [len(row.problems) for name, row in ROWS.items() if name not in PICKED] == [18, 6, 2, 24, 19, 9, 4, 4, 3, 5]
    assert all(kind(row.operation).parse(label) for row in OURS.rows for label in row.problems)
    assert set(ROWS["images"].goals[2].problems) == filters(SIZES[2:], [3])


def test_what_is_picked_is_judged_on_problems_that_were_not_tuned_on():
    tuning = tomllib.loads((ROOT / "benchmarks" / "commands" / "tune.toml").read_text())
    assert (tuning["sets"], PICKED) == (list(SETS), [f"auto: {name}" for name in (*SETS, "random")])
    tuned = labels(generate(tuning["random"], tuning["seed"])).union(*(ROWS[f"auto: {name}"].problems for name in SETS))
    drawn = [problem.label for problem in generate(260, 11) if problem.label not in tuned]
    assert list(ROWS["auto: random"].problems) == drawn[:200]


def test_the_goals_are_these():
    said = {name: [str(goal) for goal in row.goals] for name, row in ROWS.items() if name not in PICKED}
    assert said == {
        "images": [
            "geometric mean at least 25x torch",
            "geometric mean at least 1.2x opencv",
            "each of 4 problems at least 0.8x copy",
        ],
        "large filters": ["geometric mean at least 5x torch", "geometric mean at least 1x opencv"],
        "few channels": ["geometric mean at least 10x torch"],
        "winograd": ["geometric mean at least 1.8x torch, each at least 1.4x torch", "relative L2 error at most 2e-05"],
        "exact layers": ["geometric mean at least 1.1x torch, each at least 0.95x torch", "exact arithmetic"],
        "depthwise": ["geometric mean at least 2x torch"],
        "adam step": ["each at least 1x cpu.torch_fused", "each at least 4x cpu.numpy", "each at least 0.8x limit"],
        "read batch": ["geometric mean at least 10x cpu.rasterio, each at least 10x cpu.rasterio"],
        "train step": ["each at least 0.909x cpu.torch", "each at least 0.909x cpu.torch_fused"],
        "preprocess": [],
    }
    own = {row.operation: (row.baseline, row.beside, row.seconds) for name, row in ROWS.items() if name not in PICKED}
    assert own == {
        "conv2d": ("torch", ("cpu.torch_channels_last",), 0.4),
        "adam_step": ("cpu.torch_fused", ("cpu.torch_foreach",), 0.4),
        "read_batch": ("cpu.rasterio", ("cpu.skimage", "cpu.skimage_torch"), 0.4),
        "train_step": ("cpu.torch", ("cpu.torch_fused",), 0.4),
        "preprocess": ("cpu.opencv", ("cpu.torch",), 0.4),
    }
    together = {each.name: ([row.name for row in each.rows], list(map(str, each.goals))) for each in OURS.overall}
    assert together == {
        "all rows": (list(said)[:6], ["geometric mean at least 3x torch"]),
        "cpu.auto": (
            PICKED,
            [
                "geometric mean at least 3x torch, each at least 0.95x torch",
                "within 10% of the fastest on 90% of the problems",
                "cpu.auto by rule: each at least 0.9x torch",
            ],
        ),
    }


def test_a_copy_is_measured_where_a_goal_needs_it():
    large, small = OURS.candidates("n1c1h2048w2048k1r3s3p1"), OURS.candidates("n1c1h512w512k1r3s3p1")
    assert large[:2] == ["torch", "cpu.torch_channels_last"]
    assert set(large) - set(small) == {"copy"}
    assert "opencv" in small
    assert "opencv" not in OURS.candidates("n1000c1h28w28k3r3s3")


def test_rivals_are_left_out_where_every_row_of_the_problem_says_so():
    said = {"also": ("slow", "torch"), "within": 3.0}
    assert Goals((row(**said),)).rivals("a") == {"within": {"rivals": ["slow"], "factor": 3.0}}
    assert Goals((row(**said, problems=("a",)), row(also=("slow",)))).rivals("a") == {}
    together = Overall("all", (row(**said),), (Goal(ours="slow", than="torch", each=1.0),))
    assert Goals((row(**said),), (together,)).rivals("a") == {}
    assert not any(OURS.rivals(label) for label in ROWS["large filters"].problems)
    both = Goals((row(**said, problems=("a",)), row(also=("other",), problems=("a",))))
    assert both.rivals("a") == {"within": {"rivals": ["slow"], "factor": 3.0}}


def test_what_is_compared_is_what_goals_want_of_single_problems():
    first = row(Goal(than="torch", geomean=3.0, each=0.95), Goal(than="copy", each=0.8, problems=("b",)), also=("numba",))
    assert Goals((first,)).comparisons("a") == [("ours", "torch", 0.95)]
    assert Goals((first,)).comparisons("b") == [("ours", "torch", 0.95), ("ours", "copy", 0.8)]
    together = Overall("all", (first,), (Goal(near=0.25, share=0.9), Goal(ours="numba", than="torch", each=0.9)))
    near = [("ours", name, 0.8) for name in ("torch", "torch.last", "numba")]
    assert Goals((first,), (together,)).comparisons("a") == [("ours", "torch", 0.95), *near, ("numba", "torch", 0.9)]
    assert not OURS.comparisons("n1c1h512w512k1r3s3p1")  # geometric means alone
    label = ROWS["auto: vgg16"].problems[0]
    assert ("cpu.auto", "torch", 0.95) in OURS.comparisons(label)
    assert {ours for ours, *_ in OURS.comparisons(label)} >= {"cpu.auto", "cpu.auto by rule"}


def test_an_unknown_row():
    assert OURS.only(("winograd", "images")) == (ROWS["images"], ROWS["winograd"])
    with pytest.raises(click.ClickException, match="no row is called 'image'; there are images, large filters"):
        OURS.only(("image",))


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (None, "is not there"),
        ("row", "TOMLDecodeError"),
        ("baseline = 1", "'row'"),
        ('beside = []\nrow = [{name = "a"}]', "'problems'"),
        ("beside = []\nrow = [{goals = [{then = 1}], problems = []}]", "then"),
        ('speed = 1\nrow = [{name = "a", goals = [], problems = []}]', "speed"),
    ],
)
def test_a_file_that_holds_no_goals(tmp_path, content, word):
    if content is not None:
        (tmp_path / "speed.toml").write_text(content)
    with pytest.raises(click.ClickException) as caught:
        goals.load(tmp_path / "speed.toml")
    assert f"{tmp_path.name}/speed.toml" in caught.value.message
    assert word in caught.value.message
    assert "\n" not in caught.value.message


# Judging


positive = st.floats(1e-7, 10.0)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=5), st.floats(0.1, 10), st.floats(0.1, 10))
def test_a_goal_is_met_by_the_geometric_mean_and_by_the_least(pairs, geomean, each):
    problems = tuple(map(str, range(len(pairs))))
    found = times(*(line(label, 1, {"torch": a, "ours": b}) for label, (a, b) in zip(problems, pairs, strict=True)))
    ratios = [a / b for a, b in pairs]
    middle = float(np.exp(np.mean(np.log(ratios))))
    for goal, met in [
        (Goal(than="torch", geomean=geomean), middle >= geomean),
        (Goal(than="torch", each=each), min(ratios) >= each),
        (Goal(than="torch", geomean=geomean, each=each), middle >= geomean and min(ratios) >= each),
        (Goal(than="torch", each=each, problems=problems[:1]), ratios[0] >= each),
    ]:
        wanted = [value for value in (goal.geomean, goal.each) if value]
        if any(math.isclose(figure, value, rel_tol=1e-6) for figure in (middle, *ratios) for value in wanted):
            continue
        verdict = goals.judge([row(goal, problems=problems)], goal, found, 1)
        assert verdict.status == ("met" if met else "missed")
    # Of rows together each counts once: here the first problem by itself, and all of them.
    rows, goal = [row(problems=problems[:1]), row(problems=problems)], Goal(than="torch", geomean=geomean)
    together = math.sqrt(ratios[0] * middle)
    if not math.isclose(together, geomean, rel_tol=1e-6):
        assert goals.judge(rows, goal, found, 1).status == ("met" if together >= geomean else "missed")


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(positive, min_size=2, max_size=4), min_size=1, max_size=8), st.floats(0.01, 1), st.floats(0.1, 1))
def test_near_the_fastest_on_a_share_of_the_problems(medians, near, share):
    problems = tuple(map(str, range(len(medians))))
    lines = []
    for label, (ours, *others) in zip(problems, medians, strict=True):
        cells = {f"rival {i}": other for i, other in enumerate(others)}
        lines.append(line(label, 1, {"ours": ours, **cells, "slow": SKIPPED, "ours packed once": 1e-9, "copy": 1e-9}))
    goal = Goal(near=near, share=share)
    behind = [ours / min(ours, *others) for ours, *others in medians]
    if any(math.isclose(each, 1 + near, rel_tol=1e-6) for each in behind):
        return
    count = sum(each <= 1 + near for each in behind)
    verdict = goals.judge([row(goal, problems=problems)], goal, times(*lines), 1)
    assert verdict.figure.startswith(f"{count} of {len(problems)}, ")
    assert verdict.status == ("met" if count >= share * len(problems) else "missed")


def test_a_goal_of_another_than_its_row():
    goal = Goal(ours="by rule", than="torch", each=0.9)
    lines = [line(label, 1, {"torch": 1.0, "ours": FAILED, "by rule": 0.5}) for label in ("a", "b")]
    assert str(goal) == "by rule: each at least 0.9x torch"
    assert str(goals.judge([row(goal)], goal, times(*lines), 1)) == "met: 2.00x, worst 2.00x (a)"


@pytest.mark.parametrize(
    ("cells", "copied"),
    [
        ({"torch": 1.0, "ours": FAILED}, "not judged"),
        ({"torch": 1.0, "ours": SKIPPED}, "not judged"),
        ({"torch": 1.0}, "not judged"),
        ({"torch": FAILED, "ours": 0.1}, "met"),
        ({"ours": 0.1}, "met"),
        ({}, "not judged"),
    ],
)
def test_a_row_that_lacks_a_time_is_not_judged(cells, copied):
    lines = [line("a", 1, {"torch": 1.0, "copy": 1.0, "ours": 0.1}), line("b", 1, cells)]
    goal = Goal(than="torch", geomean=2.0)
    promised = row(goal)
    verdict = goals.judge([promised], goal, times(*lines), 1)
    assert str(verdict) == "not judged: no time for 1 of 2 problems"
    both = [row(goal, problems=("a",)), promised]
    assert str(goals.judge(both, goal, times(*lines), 1)) == "not judged: no time for 1 of 2 problems"
    # A goal that concerns other problems of the row is judged only where ours has every time.
    copy = Goal(than="copy", each=0.8, problems=("a",))
    assert goals.judge([row(copy)], copy, times(*lines), 1).status == copied
    assert goals.judge([row(goal)], goal, times(lines[0]), 1).status == "not judged"  # b is not measured
    assert goals.judge([row(goal, problems=("a",))], goal, times(*lines), 2).status == "not judged"  # on two threads


@pytest.mark.parametrize(
    ("intervals", "each", "near"),
    [
        ([], False, False),
        ([["ours", "torch", 0.8, 0.97]], True, True),
        ([["ours", "torch", 0.8, 0.9]], False, False),
        ([["ours", "torch", 0.96, 1.1], ["ours", "numba", 0.85, 1.2]], False, True),
        ([["ours", "torch", 0.96, 1.1], ["ours", "numba", 0.85, 1.2], ["ours", "packed", 0.5, 0.6]], False, False),
        ([["ours", "torch", 0.96, 1.1], ["ours", "numba", 0.85, 1.2], ["ours", "copy", 0.5, 0.6]], False, True),
        ([["ours", "torch", 0.96, 1.1], ["ours", "copy", 0.85, 1.2]], False, False),
        ([["by rule", "torch", 0.8, 0.97]], False, False),
    ],
)
def test_what_is_too_close_to_tell_is_said(intervals, each, near):
    found = times(line("a", 1, {"torch": 0.93, "ours": 1.0}, intervals=intervals))
    promised = Goal(than="torch", each=0.95)
    verdict = goals.judge([row(promised, problems=("a",))], promised, found, 1)
    close = "; too close to tell: 1 of those that miss it, 0 of the others" * each
    assert str(verdict) == f"missed: 0.930x, worst 0.930x (a), 1 of 1 under 0.95x{close}"
    promised = Goal(near=0.1, share=0.9)
    verdict = goals.judge([row(promised, problems=("a",))], promised, found, 1)
    close = "; too close to tell: 0 of those that miss it, 1 of the others" * near
    assert str(verdict) == f"met: 1 of 1, at worst 1.08 times as long (a){close}"


# In several processes


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(positive, positive, positive), min_size=1, max_size=5), st.floats(0.1, 10), st.floats(0.01, 1))
def test_of_several_processes_the_median_ratio_counts(processes, least, near):
    lines = [line("a", 1, {"torch": torch, "ours": ours, "rival": rival}) for torch, ours, rival in processes]
    ratio = float(np.median([torch / ours for torch, ours, _ in processes]))
    behind = max(float(np.median([each[1] / each[i] for each in processes])) for i in range(3))
    for goal, figure, wanted in [
        (Goal(than="torch", each=least), ratio, least),
        (Goal(near=near, share=1.0), -behind, -1 - near),
    ]:
        if not math.isclose(figure, wanted, rel_tol=1e-6):
            verdict = goals.judge([row(goal, problems=("a",))], goal, times(*lines), 1)
            assert verdict.status == ("met" if figure >= wanted else "missed")
    samples = times(*lines).result("a", 1, "ours").entry["samples"]
    assert sorted(samples) == sorted(factor * ours for _, ours, _ in processes for factor in (0.9, 1, 1.1))


@pytest.mark.parametrize(
    ("ratios", "wanted"),
    [
        ([], 1),
        ([0.7], 1),
        ([1.2], 1),
        ([0.8], 3),
        ([0.94], 3),
        ([1.15], 3),
        ([1.15, 0.9], 3),
        ([1.15, 1.0, 0.96], 3),
        ([0.9, 0.5, 0.94], 3),
        ([0.94, 0.93, 0.96], 5),
        ([1.1, 1.0, 0.9, 0.9], 5),
        ([1.0, 1.0, 1.0, 0.9, 0.9], 3),
        ([1.3, 0.9, 0.9], 1),
    ],
)
def test_what_is_close_to_what_a_goal_wants_is_measured_in_several_processes(ratios, wanted):
    found = times(*(line("a", 1, {"torch": each, "ours": 1.0, "by rule": 9.0}) for each in ratios))
    promised = [Goal(than="torch", each=0.95), Goal(than="torch", geomean=1.0)]
    for each, count in [(promised, wanted), (promised[1:], 1), ([Goal(ours="by rule", than="torch", each=0.95)], 1)]:
        assert Goals((row(*each, problems=("a",)),)).processes(("a", 1), found) == count


@pytest.mark.parametrize(
    ("behind", "wanted"),
    [
        ([], 1),
        ([1.03], 1),
        ([1.26], 1),
        ([1.05], 3),
        ([1.24], 3),
        ([1.24, 1.0], 3),
        ([1.05, 1.0, 1.09], 3),
        ([1.05, 1.0, 1.11], 5),
        ([1.2, 1.11, 1.01], 5),
        ([1.0, 1.2, 1.3], 1),
    ],
)
def test_what_is_hardly_within_what_is_near_the_fastest_is_measured_in_several_processes(behind, wanted):
    found = times(*(line("a", 1, {"torch": 9.0, "ours": each, "rival": 1.0, "copy": 0.1}) for each in behind))
    for promised, count in [((Goal(near=0.1, share=0.9),), wanted), ((Goal(than="torch", geomean=3.0),), 1)]:
        assert Goals((row(*promised, problems=("a",)),)).processes(("a", 1), found) == count
    assert (
        Goals((row(Goal(near=0.1, share=0.9), problems=("a",)),)).processes(("a", 1), times(line("a", 1, {"ours": FAILED})))
        == 1
    )


def test_of_rivals_as_fast_as_each_other_none_counts_for_having_come_first_by_chance():
    processes = [
        {"ours": 1.0, "torch": 0.8, "rival": 1.0},
        {"ours": 1.0, "torch": 1.0, "rival": 0.8},
        {"ours": 1.0, "torch": 1.0},
    ]
    assert times(*(line("a", 1, each) for each in processes)).behind("a", 1, "ours") == 1.0
    left_out = [{"ours": 1.0, "torch": 2.0, "rival": 0.5}, *[{"ours": 1.0, "torch": 2.0, "rival": SKIPPED}] * 2]
    assert times(*(line("a", 1, each) for each in left_out)).behind("a", 1, "ours") == 1.0


def test_several_processes_that_disagree_are_too_close_to_tell():
    promised, bounds = Goal(than="torch", each=0.95), {"intervals": [["ours", "torch", 0.97, 0.98]]}
    for ratios, said in [
        ((0.9, 0.96, 0.97), "met: 0.960x, worst 0.960x (a); too close to tell: 0 of those that miss it, 1 of the others"),
        ((0.96, 0.96, 0.97), "met: 0.960x, worst 0.960x (a)"),
        ((0.94, 0.93, 0.92), "missed: 0.930x, worst 0.930x (a), 1 of 1 under 0.95x"),
    ]:
        found = times(*(line("a", 1, {"torch": each, "ours": 1.0}, **bounds) for each in ratios))
        assert str(goals.judge([row(promised, problems=("a",))], promised, found, 1)) == said


@pytest.mark.parametrize("wrong", ["ours", "torch"])
def test_a_candidate_that_failed_in_one_of_several_processes_has_no_time(wrong):
    good = {"torch": 1.0, "ours": 0.5}
    found = times(line("a", 1, good), line("a", 1, {**good, wrong: FAILED}), line("a", 1, good))
    goal = Goal(than="torch", each=0.95)
    assert goals.judge([row(goal, problems=("a",))], goal, found, 1).status == "not judged"
    assert found.result("a", 1, wrong).entry["reason"] == "why"


def test_errors_and_families_are_judged():
    def ours(**more):
        return {"ours": {"status": "ok", "samples": [1.0], "relative_l2": 1e-7, "family": "direct", **more}}

    error, exact = Goal(error=2e-5), Goal(exact=True)
    good, bad = line("a", 1, ours()), line("b", 1, ours(relative_l2=3e-5, family="winograd"))
    assert str(goals.judge([row(error, problems=("a",))], error, times(good), 1)) == "met: at most 1.0e-07 (a)"
    assert str(goals.judge([row(error)], error, times(good, bad), 1)) == "missed: at most 3.0e-05 (b)"
    assert str(goals.judge([row(exact, problems=("a",))], exact, times(good), 1)) == "met: direct"
    assert str(goals.judge([row(exact)], exact, times(good, bad), 1)) == "missed: direct and winograd"
