"""The photograph after every step of a convolution by shifted images: the wrong sum, and the right one at last."""

import json

import numpy as np
import pytest
from picture_commands import run_here

import impls
from benchmarks.errors import WrongAnswer
from benchmarks.pictures import gallery, shifts
from benchmarks.workloads import inputs

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


@pytest.mark.parametrize("filter", inputs.FILTERS)
def test_every_step_is_what_it_says(filter):
    found = shifts.pictures(filter)
    photo, taps = gallery.photograph(), np.array(inputs.FILTERS[filter])
    wrong, *rolled, last = list(found.values())[1:]
    assert np.allclose(wrong, np.clip((taps.sum() * photo[0].transpose(1, 2, 0) + 1) / 2, 0, 1), atol=1e-6)
    assert len(rolled) == 9
    weight = np.broadcast_to(taps, (3, 1, 3, 3)).astype(np.float32)
    for name in ("cpu.roll", "cpu.loops"):
        expected = gallery.visible(impls.load(name)(photo, weight, groups=3))
        assert np.allclose(last, expected, atol=1e-6)
    assert np.array_equal(rolled[-1][:-2, :-2], last)
    if filter != "identity":
        assert not np.allclose(wrong[:-2, :-2], last, atol=0.05)


def test_a_picture_that_is_wrong_is_not_drawn(monkeypatch):
    monkeypatch.setattr(shifts.np, "roll", lambda array, shift, axis: array)
    with pytest.raises(WrongAnswer, match="relative L2 error"):
        shifts.pictures("emboss")


def test_the_command_draws_it(tmp_path):
    path = tmp_path / "shifts.png"
    done = run_here("shifts", json.dumps({"filter": "sharpen", "path": str(path)}))
    assert (done.returncode, done.stdout) == (0, f"the shifts are {path}\n")
    with Image.open(path) as picture:
        assert picture.width > 1000
    done = run_here("shifts", "--filter", "blur")
    assert done.stderr == "no shifts: no filter is called 'blur'; there are identity, emboss, sharpen, edges"
