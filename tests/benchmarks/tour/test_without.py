"""Whole stories without a library, a tool or a device: each step works, or says what it lacks and would have shown."""

import json
import os
import subprocess
import sys

import pytest
from picture_commands import ROOT

from benchmarks.tour import stories
from convbench.suite import tour

# For every process: these modules are not installed.
HIDE = """
import os, sys

names = os.environ["HIDDEN"].split()


class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in names else self.finder.find_spec(name, path, target)


sys.meta_path[:] = map(Hiding, sys.meta_path)
"""
# A story with as few samples, calls and rounds as each step can do with.
TELL = """
import json, sys
from benchmarks.tour import steps, stories


class Short(steps.Setting):
    def choose(self, fast, usual):
        return min(fast, 2) if isinstance(fast, int) else 0.0 if isinstance(fast, float) else fast


steps.MIN_SAMPLES = 2
stories.Setting = Short
for event in stories.one(sys.argv[1], True):
    if "told" in event:
        print(json.dumps(event["told"]))
"""
# Of each story: what is hidden, and the steps that then cannot be measured.
WITHOUT = {
    ("loops", "scipy"): {"times", "recursion", "sizes"},
    ("loops", "torch numba cv2 matplotlib"): set(),
    ("readers", "rasterio skimage tifffile numba"): {"times", "clocks", "sweep", "sheet", "traces", "curves"},
    ("readers", "torch matplotlib"): {"times", "clocks", "sheet", "traces", "curves"},
    ("adam", "torch"): {"profile", "script", "move", "ladder"},
    ("adam", "numba matplotlib"): set(),
    ("vision", "PIL"): {"region", "batches", "fused", "stages", "decoders", "light"},
    ("vision", "cv2 torch matplotlib"): {"fused", "stages", "decoders", "light"},
    ("vision", "numba torch matplotlib"): {"light"},
    ("shifts", "torch matplotlib"): {"steps", "ways", "pixels", "strides", "training"},
    ("shifts", "sklearn"): {"training"},
}
QUICK = {("readers", "rasterio skimage tifffile numba"), ("vision", "PIL")}
# What these steps need may be missing in any case; the photograph may have been kept by an earlier run.
ANYWHERE = {"flames", "device", "steps"}


def told(tmp_path, story, hidden):
    """The steps of a story where no tool is on the path, and there is no display and no device."""
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    more = {"HIDDEN": hidden, "PYTHONPATH": str(tmp_path), "PATH": str(tmp_path), "CUDA_VISIBLE_DEVICES": "", "DISPLAY": ""}
    done = subprocess.run(
        [sys.executable, "-c", TELL, story], cwd=ROOT, env={**os.environ, **more}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("story", "hidden"), [pytest.param(*case, marks=[pytest.mark.proof] * (case not in QUICK)) for case in WITHOUT]
)
def test_a_story_is_told_to_its_end_without(story, hidden, tmp_path):
    steps = told(tmp_path, story, hidden)
    assert [step["name"] for step in steps] == [step.name for step in stories.STORIES[story].steps]
    for step in steps:
        lacking = bool(step["missing"])
        print(step["name"], step["missing"], step["notes"], [t for t in step["texts"] if t.startswith("No ")])
        assert step["name"] in ANYWHERE or lacking == (step["name"] in WITHOUT[story, hidden]), step["missing"]
        assert lacking != bool(step["sentences"])
        if lacking:
            words = " ".join(tour.text(step).split())
            assert f"Not measured here: {step['missing']}. It would have shown {step['would']}" in words
