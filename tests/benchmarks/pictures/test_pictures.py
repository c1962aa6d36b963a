"""Stages of preprocess: what they are drawn from is right; and what is wrong with the request of any picture."""

import functools

import pytest
from gpu_stand_ins import cupy_on_numpy, replaced
from picture_commands import run_here

import impls
from benchmarks.pictures import stages
from benchmarks.pictures.stages import Bar
from benchmarks.workloads import jpegs
from benchmarks.workloads.jpegs import Frames

pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")

pytest.importorskip("sklearn", reason="the digits and the photograph ship with scikit-learn")


def test_the_stages_add_up_to_the_call():
    *_, (one, four) = stages.measure(stages.prepare("cpu.numpy_batched", Frames(1, 120, 160, 60, 80, 48), (1, 4)))
    assert (one.count, four.count) == (1, 4)
    for bar in (one, four):
        assert list(bar.stages) == ["decode", "to_patch", "normalise", "convolve", "finish", stages.REST]
        assert 0.1 < sum(bar.stages.values()) / bar.seconds < 10  # in what unit and of how many images
        assert bar.stages["decode"] > 0


@pytest.mark.slow
def test_every_implementation_has_stages():
    names = [name for name in stages.SHOWN if name.startswith("cpu.")]
    calls = {
        place: call for name in names for place, call in stages.prepare(name, Frames(1, 48, 64, 24, 32, 16), (1,)).items()
    }
    bars = next(stages.measure(calls))
    assert [bar.name for bar in bars] == names
    for bar in bars:
        assert {"decode", "to_patch", "finish"} <= set(bar.stages)


@pytest.mark.parametrize("name", ["gpu.cupy", "gpu.cupy_batched"])
def test_on_a_device_transfers_stand_apart(name):
    frames = Frames(2, 48, 64, 24, 32, 16)
    given = jpegs.jpegs(frames), jpegs.regions(frames), jpegs.WEIGHT, jpegs.THRESHOLD, 16
    with replaced(cupy_on_numpy()):
        function = impls.load(name, "preprocess")
        (bar,) = next(stages.measure({(name, 2): functools.partial(function, *given)}))
    assert list(bar.stages) == ["decode", "upload", "compute", "download", "paste", stages.REST]


def test_a_panel_for_each_and_a_colour_for_each_stage(tmp_path):
    bars = [Bar(name, n, {"decode": 1e-3, stages.REST: 1e-4 * n}, 1e-3) for name in ("cpu.a", "cpu.b") for n in (1, 2)]
    stages.draw(bars, "the title", tmp_path / "stages.svg")
    text = (tmp_path / "stages.svg").read_text()
    assert all(text.count(f"<!-- {word} -->") == 1 for word in ("cpu.a", "cpu.b", "decode", "rest", "ms an image"))
    with pytest.raises(LookupError, match="none of the implementations can run here"):
        stages.draw([], "", tmp_path / "none.png")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ("picture", "picture.png"),
        ("picture.", "picture.png"),
        (".hidden", ".hidden.png"),
        ("a.b/c", "a.b/c.png"),
        ("a.svg", "a.svg"),
    ],
)
def test_the_path_that_is_told_is_the_file_that_was_written(given, written, tmp_path):
    done = run_here("shifts", "--path", str(tmp_path / given))
    assert done.stdout == f"the shifts are {tmp_path / written}\n"
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [tmp_path / written]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["curves", '{"network": "transformer"}'], "no curves: no network is called 'transformer'"),
        (
            ["curves", '{"batch": 5000}'],
            "no curves: batch must be from 1 to the 1500 images of scikit-learn's digits, not 5000",
        ),
        (["curves", '{"epochs": 0}'], "no curves: epochs must be at least 1, not 0"),
        (["curves", "--seeds", "0", "--names", '["cpu.torch"]'], "no curves: seeds must be at least 1, not 0"),
        (["curves", "--network", "resnet"], "no curves: no network is called 'resnet'"),
        (["curves", "--seeds"], "a request has a value for each setting, as in --seeds 5, not --seeds"),
        (["curves", "--seeds", "5", "text", "6"], "a request has a value for each setting"),
        (["curves", '{"threads": 0}'], "no curves: threads must be at least 1, not 0"),
        (["curves", '{"epochs": "5"}'], "no curves: epochs is a int, not '5'"),
        (["curves", '{"threads": 4096}'], "no curves: threads=4096, but this machine has"),
        (["curves", '{"names": ["cpu.absent"]}'], "no curves: "),
        (["stages", '{"problem": "cat"}'], "no stages: 'cat' is not a label of frames"),
        (["stages", '{"networks": 1}'], "no stages: a request has names, problem and path, not networks"),
        (["stages", '{"names": ["gpu.absent"]}'], "no stages: none of the implementations can run here"),
    ],
)
def test_errors_in_a_sentence(arguments, words):
    done = run_here(*arguments)
    assert done.returncode == 1
    assert words in done.stderr
