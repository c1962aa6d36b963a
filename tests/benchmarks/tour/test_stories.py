"""The stories are told to the end, also where something is missing, and a page shows all of them."""

import json
import sys

import pytest
from picture_commands import run

from benchmarks.errors import Skip
from benchmarks.tour import page, profiles, stories
from benchmarks.tour.charts import Picture
from benchmarks.tour.steps import Found, Lacking, Setting, Step, Timings, told

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("jinja2", reason="the page is written with Jinja")
SHARES = {"im2col": 0.9, "index": 0.3, "border": 0.2}
STEPS = {f"{name}-{step.name}": step for name, story in stories.STORIES.items() for step in story.steps}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_step_has_all_its_words(step):
    assert all((step.title, step.guess, step.command, step.why, step.would))
    assert "?" in step.guess
    assert step.would.endswith(".")
    assert step.would[0].islower() or step.would[0].isdigit()


def ended(generator):
    try:
        while True:
            next(generator)
    except StopIteration as stop:
        return stop.value


class Failing(Step):
    name, would = "failing", "nothing."

    def __init__(self, error):
        self.error = error

    def measure(self, setting):
        yield {"preparing": "cpu.absent"}
        raise self.error


@pytest.mark.parametrize("error", [Lacking("no dot"), Skip("no dot"), ImportError("no dot"), OSError("no dot")])
def test_a_step_that_cannot_be_measured_says_why(error, tmp_path):
    found = ended(stories.tell("loops", Failing(error), Setting(True, tmp_path), stories.threads.cores()))
    assert (found["missing"], found["would"], found["sentences"]) == ("no dot", "nothing.", [])


class OneAbsent(Timings):
    name, problem, unit = "times", "n1c1h7w7k1r3s3", "a call"
    names = ("cpu.loops", "cpu.absent")
    seconds = 0.01, 0.01


def test_a_missing_implementation_leaves_the_table_of_the_others(tmp_path):
    found = ended(stories.tell("loops", OneAbsent(), Setting(True, tmp_path), stories.threads.cores()))
    assert found["missing"] == "cpu.absent: not in this commit"
    assert found["sentences"] == []
    assert [row[0] for row in found["tables"][0]["rows"]] == ["cpu.loops"]
    assert found["notes"] == ["cpu.absent has no time: not in this commit"]


def test_without_matplotlib_there_is_no_picture_and_all_else(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = told("loops", STEPS["loops-profile"], Found({"calls": 2, "seconds": 1.0, "shares": SHARES}), None)
    assert found["pictures"] == []
    assert found["texts"] == ["No picture: matplotlib is not installed"]
    assert found["sentences"]


def test_without_torch_its_clock_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.benchmark", None)
    found = ended(stories.tell("readers", STEPS["readers-clocks"], Setting(True, tmp_path), stories.threads.cores()))
    assert found["missing"].startswith("torch's Timer cannot be imported")


@pytest.mark.parametrize(
    ("moved", "words"), [(2e-3, "little arithmetic for much moving"), (1e-4, "the work is worth the way")]
)
def test_a_device_shows_transfers_against_work(moved, words):
    bar = {"name": "gpu.torch", "count": 16, "stages": {"decode": 5e-3, "upload": moved, "compute": 1e-3}, "seconds": 8e-3}
    lacking = {"gpu.cupy": "unavailable: gpu.cupy needs CuPy"}
    found = told("vision", STEPS["vision-device"], Found({"bars": [bar], "lacking": lacking}), None)
    assert words in found["sentences"][0]
    assert ">upload<" in found["pictures"][0]["content"]
    assert found["notes"] == ["gpu.cupy has no time: gpu.cupy needs CuPy"]


def test_a_profile_that_fails_is_told_in_its_own_words():
    with pytest.raises(Lacking, match=r"^no implementation of conv2d is called 'cpu\.absent'"):
        profiles.profile(["cpu.absent", "n1c1h7w7k1r3s3"])


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"story": "lops"}, "no story is called 'lops'; there are loops, readers"),
        ({"quick": True}, "story, fast, page, not quick"),
    ],
)
def test_a_request_that_is_none(request_, words):
    with pytest.raises((LookupError, ValueError), match=words):
        next(stories.run(request_))


def test_a_page_needs_no_other_file():
    step = told(
        "loops", STEPS["loops-tree"], Found({"times": 2.0}, ["<a & b>"], [Picture("data:image/png;base64,AA", "A")]), None
    )
    text = page.html([step], {"loops": {"number": "S0", "title": "Loops", "source": "A page"}})
    assert "&lt;a &amp; b&gt;" in text
    assert "takes 2.0 times as long" in text
    assert "<script" not in text
    assert "call graph as text" in text
    assert not any(f'{attribute}="http' in text for attribute in ("src", "href"))


@pytest.mark.slow
def test_a_story_is_told_to_its_end():
    done = run("tour", json.dumps({"story": "loops", "fast": True, "page": True}))
    assert done.returncode == 0, done.stderr
    *events, last = map(json.loads, done.stdout.splitlines())
    steps = [event["told"] for event in events if "told" in event]
    assert [step["name"] for step in steps] == [step.name for step in stories.STORIES["loops"].steps]
    for step in steps:
        assert step["sentences"] or step["missing"]
        assert all(sentence in last["page"].replace("&#39;", "'") for sentence in step["sentences"])
    assert last["page"].count("<svg") >= 4  # a picture for each step with numbers
    assert "data:image/svg+xml" in last["page"] or "Not measured here" in last["page"]  # the flame graph
