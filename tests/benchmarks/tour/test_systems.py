"""Every system of the texts is in a story: a row with its files, its step and its command."""

import re
from pathlib import Path

import pytest

from benchmarks.tour import kept, notebooks, seeds, systems
from benchmarks.tour.stories import STORIES

ROOT = Path(__file__).parents[3]
ROWS = [(story, system) for story, rows in systems.SYSTEMS.items() for system in rows]
# What the texts built or measured, by words of its row there and a file, an implementation or a command of it here.
TEXTS = {
    "loops": {
        "four nested loops": "cpu/loops.py",
        "two and a slice": "cpu/sliced_loops.py",
        "im2col, naive": "im2col/naive.py",
        "recursive": "im2col/recursive.py",
        "any number of axes": "impls/im2col/cpu",
        "sub-results cached": "recursive_cached.py",
        "scipy.signal.convolve2d": "cpu/scipy_convolve2d.py",
        "comparisons of run time": "conv2d.ImageSize",
        "larger matrices": "im2col.ImageSize",
        "deterministic profile": "convbench profile",
        "call graph as text": "profile.md",
        "sampling profile": "--native",
    },
    "readers": {
        "EuroSAT: 27,000 GeoTIFFs": "benchmarks/workloads/eurosat.py",
        "reader A: rasterio": "cpu.rasterio",
        "reader B: scikit-image": "cpu.skimage",
        "reader C: scikit-image, normalised in torch": "cpu.skimage_torch",
        "sweep of batches, threads and readers": "convbench table --layout compare",
        "`timeit`": "benchmarks/timing/clock.py",
        "`torch.utils.benchmark`": "benchmarks/timing/clock.py",
        "a Dataset a reader": "impls/train_tiles/datasets.py",
        "DataLoader": "impls/train_tiles/datasets.py",
        "a sheet of 25 tiles": "python -m benchmarks tile_sheet",
        "ResNet-18": "python -m benchmarks tile_curves",
        "loss and accuracy": "tile_training.png",
        "`torch.profiler`, a trace a reader": "python -m benchmarks tile_traces",
    },
    "adam": {
        "profile first": "convbench profile cpu.numpy perceptron-n100",
        "call graph": "--graph",
        "nothing compiled": "impls/train_step/perceptron.py",
        "the script compiled unchanged": "cpu.cython_untyped",
        "with types": "cpu.cython_typed",
        "update moved into Cython": "cpu.cython_update",
        "open wish: compiled functions inside the call graph": "make profiled",
        "the update alone": "adam_step",
    },
    "vision": {
        "the cycle": "python -m benchmarks stages",
        "the speed of light": "convbench/stored/roofline.py",
        "profilers": "profile.md",
        "only the region": "cpu.numpy",
        "pasted back": "cpu.numpy",
        "functions rewritten for batches": "cpu.numpy_batched",
        "UMat": "cpu.opencv_umat",
        "GPU libraries, operators, transfers": "gpu.cupy",
        "Numba": "cpu.numba_fused",
        "Cython": "cpu.cython_fused",
        "OpenCV without vector code": "cpu.opencv_baseline",
        "a ufunc by hand": "cpu.numpy_ufunc",
        "Intel's Python": "mkl_umath",
        "JPEG decoding": "decode_jpeg",
        "will a better CPU or GPU": "python -m benchmarks bound",
        "hardware and versions": "convbench doctor",
    },
    "shifts": {
        "`F.conv2d`": "cpu/torch.py",
        "loops over pixels": "cpu/loops.py",
        "added without shifting": "python -m benchmarks shifts",
        "rolled and added": "cpu/roll.py",
        "nine 1x1 products": "cpu/roll_matmul.py",
        "with slices, any kernel size": "cpu/torch_shift_matmul.py",
        "`nn.Module` on top": "impls/train_step/layers.py",
        "own network on MNIST": "text-n1000",
        "the built-in layer": "cpu.torch",
        "plots of accuracy and loss over time and steps": "python -m benchmarks curves",
        "maybe random": "--seeds 5",
        "strides, transposed convolution": "impls/conv_transpose2d",
        "the photograph after each step": "python -m benchmarks gallery",
    },
}


@pytest.mark.parametrize(("story", "words", "here"), [(story, *row) for story, rows in TEXTS.items() for row in rows.items()])
def test_a_system_of_a_text_has_its_row(story, words, here):
    found = [system for system in systems.SYSTEMS[story] if words in system.there]
    assert found
    assert any(here in system.here for system in found)


@pytest.mark.parametrize(("story", "system"), ROWS, ids=[f"{story}-{system.there or system.here}" for story, system in ROWS])
def test_a_row_names_a_step_of_its_story_and_what_is_there(story, system):
    assert system.step in {step.name for step in STORIES[story].steps}
    quoted = re.findall(r"`([^`]+)`", system.here)
    assert quoted or "profile.md" in system.here or "tried once" in system.here
    for path in (each for each in quoted if re.fullmatch(r"(impls|benchmarks|convbench)/[\w/]+(\.py)?", each)):
        assert (ROOT / path).exists()


def test_every_step_has_a_row():
    assert {(story, system.step) for story, system in ROWS} == {
        (name, step.name) for name, story in STORIES.items() for step in story.steps
    }


def test_the_page_of_the_texts_is_what_was_stored():
    text = (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8")
    assert text == seeds.markdown(), "python -m benchmarks seeds > docs/seeds.md"
    for name, results in kept.newest().items():
        assert f"`convbench tour {name}` on `{results.machine}` at {results.commit}, {results.date}." in text


@pytest.mark.parametrize("name", STORIES)
def test_a_notebook_is_what_was_stored(name):
    path = ROOT / "docs" / "tour" / f"{name}.ipynb"
    # Each version of Matplotlib draws in its own way.
    drawn = re.compile(r"<svg .*?</svg>")
    expected, found = (drawn.sub("", text.replace("\\n", "")) for text in (made(name), path.read_text(encoding="utf-8")))
    assert re.sub(r'",\s*"', "", found) == re.sub(r'",\s*"', "", expected), "python -m benchmarks notebooks"


def made(name):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    pytest.importorskip("jinja2", reason="the page is written with Jinja")
    return notebooks.notebook(name, kept.newest()[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.proof] * (name != "shifts")) for name in STORIES])
def test_a_notebook_runs(name):
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed: pip install nbformat")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install nbclient")
    folder = ROOT / "docs" / "tour"
    content = nbformat.read(folder / f"{name}.ipynb", as_version=4)
    nbformat.validate(content)
    nbclient.NotebookClient(content, timeout=200, resources={"metadata": {"path": folder}}).execute()
    outputs = [output for each in content.cells if each.cell_type == "code" for output in each.outputs]
    shown = [output for output in outputs if "text/html" in output.get("data", {})]
    assert len(shown) == len(STORIES[name].steps)
    assert all(
        'class="look"' in output.data["text/html"] or "Not measured here" in output.data["text/html"] for output in shown
    )
