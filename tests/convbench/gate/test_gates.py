"""Gates between commits with real workers: their measurements, reports and exit statuses."""

import contextlib
import math
from unittest import mock

import pytest
from command_line import inside
from gate_commits import CELL, SLOWER, addresses_can_be_set, built_by, cells

from convbench.gate import accept, judge, pipeline, workers
from convbench.gate import sample as sampling

pytestmark = pytest.mark.first

FILLED = ("--bench", r"Filled\.time_filled\(20, 'a'\)$")
ENOUGH = ("--budget", "2")  # for every round that a cell can need, on a busy machine


FEW = sampling.MAX_FAILURES  # rounds, where a test is not about statistics


@contextlib.contextmanager
def few_rounds():
    """Cells are judged after FEW rounds, and none has more."""
    with mock.patch.object(judge, "MIN_ROUNDS", FEW), mock.patch.object(sampling, "MAX_ROUNDS", FEW):
        yield


@pytest.fixture(scope="module")
def identical(gate):
    with few_rounds():
        return gate("base", "twin", "--bench", "^kinds", *ENOUGH)[1]


def test_identical_commits_pass(identical):
    assert identical["exit_status"] == 0, identical["summary"]
    assert identical["error"] is None
    assert not {cell["verdict"] for cell in identical["cells"]} & {"regressed", "broken"}


def test_every_kind_of_benchmark_is_measured_or_named(identical):
    found = cells(identical)
    measured = {name for name, cell in found.items() if cell["rounds"]}
    values = {f"Filled.{kind}(" for kind in ("track_length", "peakmem_filled")}
    assert measured == {
        *(f"{start}{params})" for start in values for params in ("10, 'a'", "20, 'a'", "20, 'b|c'")),
        "Filled.time_filled(10, 'a')",
        "Filled.time_filled(20, 'a')",
        "Filled.time_filled(20, 'b|c')",
        "Filled.time_skipped(10, 'a')",
        "Cached.time_cached",
        "EachCall.time_sort",
        "timeraw_spin",
        "time_plain",
    }
    skipped = {name for name, cell in found.items() if cell["verdict"] == "skipped"}
    assert skipped == found.keys() - measured
    assert len(skipped) == 6
    unread = "benchmarks.newest"
    not_timed = {entry["benchmark"] for entry in identical["not_timed"]}
    assert not_timed == {unread}


def test_times_are_those_of_a_call(identical):
    for name, cell in cells(identical).items():
        expected = 2e-3 if name == "timeraw_spin" else 200e-6
        if cell["rounds"] and cell["unit"] == "seconds":
            # Each side's is this one split by the ratio, and in few rounds on a busy machine the ratio may be off.
            assert expected * 0.99 < math.sqrt(cell["before"] * cell["after"]) < expected * 3, name


def test_arrays_are_compared(identical):
    answers = {name: cell["answer"] for name, cell in cells(identical).items() if cell["rounds"] and cell["log_ratios"]}
    assert {name for name, answer in answers.items() if answer == "same"} == {
        name for name in answers if name.startswith(("Filled", "Cached"))
    }


@pytest.fixture(scope="module")
def harmless(gate):
    with few_rounds():
        return gate("base", "harmless", "--bench", "^(health.(Answers|New)|newest)", *ENOUGH)


@pytest.mark.slow
def test_what_a_head_may_do(harmless):
    """Print 20 MB, return NaN, change an answer, add benchmarks."""
    _, report = harmless
    assert report["exit_status"] == 0, report
    assert cells(report)["Answers.time_filled"]["rounds"] >= FEW
    assert cells(report)["Answers.time_filled"]["answer"] == "same"


def test_answers_stand_beside_the_times(harmless):
    done, report = harmless
    found = cells(report)
    assert found["Answers.time_answer"]["answer"].startswith("changed: by at most 1.0e-03")
    assert found["Answers.time_missing"]["answer"].startswith("changed: NaN")
    assert found["Answers.time_nan_on_both"]["answer"] == "same"
    assert "its answer has changed: by at most 1.0e-03 of the largest value" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(
    not addresses_can_be_set(), reason="this machine does not let a process have addresses that are not random"
)
def test_memory_lies_alike_on_both_sides_and_elsewhere_in_every_round(gate, tmp_path, monkeypatch):
    monkeypatch.setenv("WHERE", str(tmp_path / "where"))
    with mock.patch.object(sampling, "MAX_ROUNDS", judge.MIN_ROUNDS):
        gate("base", "twin", "--bench", "Where", *ENOUGH)
    lines = (tmp_path / "where").read_text().splitlines()
    assert len(lines) == 2 * (judge.MIN_ROUNDS + 1)  # and the call before the rounds
    assert lines[::2] == lines[1::2]
    for places in zip(*map(str.split, lines[::2]), strict=True):
        assert len(set(places)) >= 3


def test_what_the_base_lacks_is_new(harmless):
    done, report = harmless
    newest = cells(report)["New.time_newest"]
    assert newest["verdict"] == "new"
    assert "newest" in newest["reason"]
    assert [entry["benchmark"] for entry in report["not_timed"]] == ["newest.time_imported"]
    assert "newest.time_imported is new" in done.stdout


@pytest.fixture(scope="module")
def breaking(gate):
    with few_rounds(), mock.patch.object(workers, "EXTRA_SECONDS", 2.0):
        return gate("base", "breaking", "--bench", r"^faults\.(Faults|Given)|^gone", *ENOUGH)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("Faults.time_raises", "ValueError: not today"),
        ("Faults.time_hangs", "gave no answer within 3 seconds"),
        ("Faults.time_dies", "killed by SIGKILL"),
        ("Given.time_given(20)", "it is skipped, and on the base it is not"),
        ("time_gone", "can no longer be imported"),
    ],
)
def test_what_a_head_breaks(breaking, cell, words):
    done, report = breaking
    assert report["exit_status"] == 3
    found = cells(report)
    assert found[cell]["verdict"] == "broken"
    assert words in found[cell]["reason"]
    assert words in done.stdout


@pytest.mark.slow
def test_what_works_beside_it_is_measured(breaking):
    found = cells(breaking[1])
    for name in ("Faults.time_fine", "Given.time_given(10)"):
        assert found[name]["verdict"] not in ("broken", "not measured"), name
        assert found[name]["rounds"] >= FEW


@pytest.mark.slow
def test_a_benchmark_file_that_cannot_be_imported(gate):
    """The gate fails if only the head cannot import it, unless cells are selected; if neither can, the report says so."""
    done, report = gate("base", "without", "--budget", "0.01")
    assert report["exit_status"] == 3
    assert report["error"].startswith("benchmarks.gone cannot be imported with the code of the head: ImportError: ")
    assert report["error"] in done.stdout
    reasons = {entry["benchmark"]: entry["reason"] for entry in report["not_timed"]}
    assert reasons["benchmarks.newest"].startswith("cannot be imported with the code of either side: ImportError: ")


@pytest.mark.slow
def test_what_fails_on_both_sides(gate):
    with few_rounds():
        done, report = gate("base", "twin", "--bench", "time_both|Faults.time_fine", *ENOUGH)
    assert report["exit_status"] == 4
    both = cells(report)["Both.time_both"]
    assert both["verdict"] == "not measured"
    assert both["reason"] == "fails on both sides: ValueError: on both sides"
    assert both["reason"] in done.stdout
    assert cells(report)["Faults.time_fine"]["rounds"] >= FEW


@pytest.fixture(scope="module")
def slower(gate):
    """Replace the rounds of a gate by those of a gate with a slower head, which are measured once."""
    measured, rounds = [], pipeline.rounds

    def record(sampling, *where):
        measured.append(sampling)
        return rounds(sampling, *where)

    def replay(sampling, *_):
        sampling.states, sampling.rounds = measured[0].states, measured[0].rounds
        yield

    with mock.patch.object(pipeline, "rounds", record):
        gate("base", "slower", *FILLED, *ENOUGH)
    return mock.patch.object(pipeline, "rounds", replay)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("head", "options", "by"),
    [
        ("slower", ["--accept", "*time_filled*", "--reason", "it is right now"], "--accept"),
        ("accepting", [], accept.FILE),
    ],
    ids=["a glob", "a file"],
)
def test_what_is_accepted_passes_and_is_told(gate, slower, head, options, by):
    with slower:
        done, report = gate("base", head, *FILLED, *options)
    assert done.returncode == 0
    (cell,) = report["cells"]
    assert cell["verdict"] == "regressed"
    assert cell["accepted"] == f"accepted by {by}: it is right now"
    assert cell["accepted"] in done.stdout
    assert report["summary"].startswith("1 accepted")


@pytest.mark.slow
def test_with_an_accept_file_the_heads_own_only_proposes(gate, slower, tmp_path):
    """The file need not be there."""
    with slower:
        _, report = gate("base", "accepting", *FILLED, "--accept-file", tmp_path / "none.toml")
    assert report["exit_status"] == 1
    (cell,) = report["cells"]
    assert (cell["verdict"], cell["accepted"]) == ("regressed", None)
    assert report["proposed"] == [{"cell": CELL, "reason": "it is right now"}]


@pytest.mark.slow
def test_a_dirty_tree_and_a_head_that_is_named(sample, python):
    sample.write({"sample/__init__.py": SLOWER})
    try:
        with built_by(python):
            done = inside(sample.folder, "gate", "main", sample.commits["twin"], *FILLED, "--budget", "0.2")
    finally:
        sample.git("checkout", "--quiet", "--", ".")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_benchmark_of_that_name(gate):
    done, report = gate("base", "twin", "--bench", "nothing")
    assert done.returncode == 4
    assert report["error"] == "no benchmark of that name can be timed on both sides"
    assert done.stdout.splitlines().count(report["error"]) == 1


def test_a_malformed_file_of_acceptances(sample, python):
    with built_by(python):
        done = inside(sample.folder, "gate", sample.commits["base"], sample.commits["malformed"], *FILLED)
    assert done.returncode == 2
    assert done.stderr == f"Error: {accept.FILE} may hold only [[accept]] tables\n"
