"""action.yml with real gates: built, measured and judged, of a suite in a sub-folder."""

import pytest
from actions import Run
from adopters import GATE, Adopter, fails, passes
from gate_projects import FAST, SLOW

pytestmark = pytest.mark.slow
COUNTING = """
import os
from pathlib import Path

import backend_itself
from backend_itself import *

def build_wheel(*arguments, **more):
    with open(os.environ["BUILDS"], "a") as file:
        print(Path("count").read_text(), file=file)
    return backend_itself.build_wheel(*arguments, **more)
"""


@pytest.fixture(scope="module")
def adopter(tmp_path_factory):
    """With main's build kept by a push, in which each build leaves a line."""
    made = Adopter(tmp_path_factory.mktemp("hub") / "hub", scripted=False)
    (made.top / "backend.py").rename(made.top / "backend_itself.py")
    made.main = made.change(**{"backend.py": COUNTING})
    pushed = run(made, made.hub.push(made.main))
    assert passes(pushed), pushed.log
    assert list(made.hub.caches) == [name for name in made.hub.caches if name.endswith(made.main)] != []
    assert pushed.artifacts == {}
    assert built(made) == [".."]
    return made


def run(adopter, context):
    made = Run(adopter.hub, context, {"BUILDS": str(adopter.folder / "builds")})
    return made.workflow(GATE, {"budget": "0.3"})


def built(adopter):
    """The commits built since the last call."""
    path = adopter.folder / "builds"
    found = path.read_text().split() if path.exists() else []
    path.write_text("")
    return found


def pull(adopter, microseconds, **files):
    head = adopter.change(microseconds, **files)
    return run(adopter, adopter.hub.pull_request(adopter.main, head))


def test_a_regression_and_what_did_not_change(adopter):
    """The base comes from the cache: the head alone is built."""
    adopter.branch("slow")
    made = pull(adopter, SLOW)
    assert fails(made)
    assert "| regressed | <code>suite.time&#95;work</code> |" in made.summary, made.log
    assert built(adopter) == ["..."]
    made = pull(adopter, FAST, other="text")
    assert passes(made), made.log
    assert "1 untouched" in made.summary
    assert built(adopter) == ["...."]
    assert len(adopter.hub.caches) == 1


def test_a_head_that_does_not_build(adopter):
    adopter.branch("broken", adopter.main)
    made = pull(adopter, FAST, **{"backend.py": "raise SystemExit('the compiler says no')"})
    assert fails(made)
    assert "the head does not build" in made.summary
    assert set(made.artifacts["gate"]) == {"gate.json", "gate.md", "build.log"}
    assert "the compiler says no" in made.artifacts["gate"]["build.log"]
