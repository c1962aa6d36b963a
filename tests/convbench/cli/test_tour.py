"""`convbench tour` prints what the suite tells it, writes a page and stores numbers, and its mistakes are one sentence."""

import gzip
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from command_line import inside, process, sentence
from repositories import git

from convbench.asv import machine, project
from convbench.suite import ask, tour

ROOT = Path(__file__).parents[3]
STEP = {
    "story": "loops",
    "name": "times",
    "title": "Four loops",
    "guess": "Is it fast?",
    "command": "convbench try 1x1x7x7 1x1x3x3",
    "why": "It is so.",
    "would": "a time.",
    "missing": None,
    "sentences": ["It is 2.0 times as fast.", "It is."],
    "tables": [{"titles": ["name", "a call"], "rows": [["cpu.loops", "1.00 ms"]]}],
    "texts": ["as printed"],
    "systems": [["four loops", "`impls/conv2d/cpu/loops.py`"]],
    "notes": ["cpu.absent has no time"],
    "pictures": [],
    "numbers": {"seconds": 0.123456789, "deep": [{"ratio": 1 / 3}]},
    "date": "2026-01-02 03:04 UTC",
}


def test_a_step_as_text():
    shown = tour.text(STEP)
    places = [
        shown.index(words)
        for words in (
            "Guess    Is it",
            "Measure  convbench",
            "cpu.loops",
            "as printed",
            "Look     It is 2",
            "Text     four loops: ",
        )
    ]
    assert places == sorted(places)
    assert max(map(len, tour.text({**STEP, "why": "word " * 200}).splitlines())) <= tour.WIDTH


def test_a_step_that_was_not_measured_says_what_it_would_have_shown():
    shown = tour.text({**STEP, "missing": "no torch", "sentences": []})
    assert "Look     Not measured here: no torch. It would have shown a time." in shown


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """A committed project whose tour is STEP."""
    git(tmp_path, "init", "--initial-branch", "main")
    conf = {"version": 1, "project": "p", "project_url": "", "repo": ".", "branches": ["main"], "results_dir": "results"}
    (tmp_path / "asv.conf.json").write_text(json.dumps(conf))
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--message", "a suite")
    events = [
        {"step": {"story": "loops", "count": 1, "of": 1, "title": "Four loops"}},
        {"told": STEP},
        {"page": "<p>page</p>"},
    ]
    monkeypatch.setattr(ask, "ask", lambda *_: iter(events))
    return tmp_path


def test_text_page_and_numbers(suite):
    done = inside(suite, "tour", "loops", "--html", str(suite.parent / "page.html"), "--keep")
    assert done.returncode == 0, done.stderr
    assert done.stderr == "loops, step 1 of 1: Four loops\n"
    assert done.stdout.startswith("LOOPS\n\nFour loops\n")
    assert (suite.parent / "page.html").read_text() == "<p>page</p>"
    (path,) = (suite / "results" / machine.name() / "tour").iterdir()
    assert path.name == git(suite, "rev-parse", "HEAD")[:8] + ".json.gz"  # not .json, which asv would read
    stored = json.loads(gzip.decompress(path.read_bytes()))
    numbers = {"seconds": 0.123457, "deep": [{"ratio": 0.333333}]}
    step = {"command": STEP["command"], "missing": None, "numbers": numbers}
    assert stored == {"loops": {"date": STEP["date"], "fast": False, "steps": {"times": step}}}


def test_another_story_is_stored_beside_the_first(suite):
    tour.keep(project.find(suite / "asv.conf.json"), [STEP], False)
    path = tour.keep(project.find(suite / "asv.conf.json"), [{**STEP, "story": "adam"}], True)
    assert list(json.loads(gzip.decompress(path.read_bytes()))) == ["loops", "adam"]


def test_uncommitted_changes_are_not_stored(suite):
    (suite / "asv.conf.json").write_text("{}\n" + (suite / "asv.conf.json").read_text())
    (suite / "asv.conf.json").write_text((suite / "asv.conf.json").read_text()[3:] + "\n")
    assert "uncommitted changes, and results are kept by commit: asv.conf.json" in sentence(inside(suite, "tour", "--keep"))
    with pytest.raises(click.ClickException, match="uncommitted"):
        tour.require_committed(project.find(suite / "asv.conf.json"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lops"], "no story is called 'lops'; there are loops, readers, adam, vision, shifts"),
        (["--html", "/absent/page.html"], "cannot write to /absent/page.html: No such file or directory"),
    ],
)
def test_a_mistake_is_one_sentence(arguments, words):
    assert words in sentence(process(ROOT, "tour", *arguments))


def test_an_interrupted_tour_is_one_sentence(tmp_path):
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "convbench", "tour", "loops", "--fast", "--html", page]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr.readline().startswith("loops, step 1 of ")
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        said = [line for line in running.stderr.read().splitlines() if not line.startswith("loops, step")]
    assert (running.returncode, said) == (1, [f"Error: interrupted: {page} was not written"])
    assert list(tmp_path.iterdir()) == []


def told(done):
    return re.findall(r"^(Look|Why|Guess|Measure)  ", done.stdout, re.MULTILINE)


@pytest.mark.proof
def test_the_whole_tour_takes_less_than_five_minutes(tmp_path):
    start = time.monotonic()
    command = [sys.executable, "-m", "convbench", "tour", "--fast", "--html", tmp_path / "page.html"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - start < 300
    counts = {role: told(done).count(role) for role in ("Guess", "Measure", "Look", "Why")}
    assert len({*counts.values()}) == 1
    chapters = (tmp_path / "page.html").read_text(encoding="utf-8").split('<section class="chapter"')[1:]
    assert len(chapters) == 5
    for chapter in chapters:
        assert "<svg" in chapter
        assert '<ul class="look">' in chapter
