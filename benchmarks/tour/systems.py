"""All that the texts built or measured: what it is here, the step of the tour that has it, and both figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from benchmarks.pictures import ladder
from benchmarks.tour.sentences import duration, percent

Results = Mapping[str, Mapping[str, Any]]  # the numbers of a story by step
Figure = Callable[[Results], str]


class System(NamedTuple):
    """there: what the text has, empty for what it has not. here: its files and commands, as Markdown. step: of the story.

    figure: what was measured here. theirs: what the text measured.
    """

    there: str
    here: str
    step: str
    figure: Figure | None = None
    theirs: str = ""


def calls(step: str, *names: str, times: float = 1, inside: str = "") -> Figure:
    """The time of so many calls by each of these implementations. inside: "counts 16" for numbers that lie deeper."""

    def figure(results: Results) -> str:
        found = results[step]
        for key in inside.split():
            found = found[key]
        return ", ".join(duration(times * found["seconds"][name][1]) if name in found["seconds"] else "-" for name in names)

    return figure


def _profile(results: Results) -> str:
    found = results["profile"]
    shares = found["shares"]
    whole = f"{found['calls']:,} calls, {duration(found['seconds'])}"
    parts = {"im2col": "im2col", "index": "index helper", "border": "bounds test"}
    return f"{whole}: " + ", ".join(f"{what} {duration(shares[each] * found['seconds'])}" for each, what in parts.items())


def _flames(results: Results) -> str:
    found = results["flames"]
    return f"index helper: {percent(found['there'] / found['stacks'])} of {found['stacks']} stacks"


def _clocks(results: Results) -> str:
    return ", ".join(map(duration, results["clocks"]["times"].values()))


def _waiting(results: Results) -> str:
    readers = results["traces"]["readers"]
    return "waiting: " + ", ".join(f"{name} {percent(each['waiting'] / each['seconds'])}" for name, each in readers.items())


def _tile_training(results: Results) -> str:
    each = results["curves"]["curves"][0]
    right = each["accuracies"]["test"][-1]
    return f"{each['batches'][-1]} batches in {duration(each['seconds'][-1])}, {percent(right)} of the test tiles"


def _shares(results: Results) -> str:
    return ", ".join(f"{name} {percent(share)}" for name, share in results["profile"]["shares"].items())


def rungs(*names: str) -> Figure:
    """The time of the post's whole training by these rungs."""

    def figure(results: Results) -> str:
        found = results["ladder"]["rungs"]
        return ", ".join(duration(ladder.STEPS * found[name]["seconds"]) for name in names)

    return figure


def _bound(results: Results) -> str:
    parts = results["light"]["parts"]["cpu.cython_fused"]
    return f"decoding {duration(parts['decoding'])} of {duration(sum(parts.values()))} by `cpu.cython_fused`"


def _loops(results: Results) -> str:
    found = results["pixels"]
    seconds = found["part"]["seconds"]["cpu.loops"][1]
    return f"{duration(seconds / found['share'])}, by {percent(found['share'])} of it"


def trained(name: str) -> Figure:
    """The time of a step of training, and the accuracy at the end, over all starts."""

    def figure(results: Results) -> str:
        own = [each for each in results["training"]["curves"] if each["name"] == name]
        step = sum(each["seconds"][-1] / each["steps"][-1] for each in own) / len(own)
        right = sum(each["accuracies"][-1] for each in own) / len(own)
        return f"{duration(step)} a step, {100 * right:.1f} %"

    return figure


MATRIX = "`convbench try --operation im2col 7x7 3x3 --padding 1`"
IM2COL = f"`impls/im2col/cpu`: `naive.py`, `recursive.py`, `recursive_cached.py`; {MATRIX}"
FLAT = "`convbench profile im2col.naive n1c1h7w7k1r3s3 --flat --sort cumulative` (`convbench/suite/flat_profile.py`)"
LOOPS = (
    System(
        "four nested loops; two and a slice",
        "`impls/conv2d/cpu/loops.py`, `impls/conv2d/cpu/sliced_loops.py`; `convbench try 1x1x7x7 1x1x3x3 NAMES`",
        "times",
        calls("times", "cpu.loops", "cpu.sliced_loops", times=100),
    ),
    System(
        "im2col, naive; recursive",
        "`impls/conv2d/im2col/naive.py`, `impls/conv2d/im2col/recursive.py`",
        "times",
        calls("times", "im2col.naive", "im2col.recursive", times=100),
        "722 ms under cProfile",
    ),
    System(
        "`scipy.signal.convolve2d`",
        "`impls/conv2d/cpu/scipy_convolve2d.py`",
        "times",
        calls("times", "cpu.scipy_convolve2d", times=100),
    ),
    System(
        "the matrix of im2col alone, any number of axes, sub-results cached",
        IM2COL,
        "recursion",
        calls("recursion", "cpu.naive", "cpu.recursive", "cpu.recursive_cached", times=100),
        "718 ms under cProfile",
    ),
    System(
        "deterministic profile by cumulative time",
        FLAT,
        "profile",
        _profile,
        "133,426 calls, 722 ms: index helper 200 ms, bounds test 111 ms",
    ),
    System("call graph as text", "[profile.md](profile.md)", "tree"),
    System("sampling profile", "`--native` of it", "flames", _flames),
    System("comparisons of run time; larger matrices", "`conv2d.ImageSize`, `im2col.ImageSize`", "sizes"),
)
READERS = (
    System(
        "EuroSAT: 27,000 GeoTIFFs of 13 bands, 64x64, in ten classes",
        "`benchmarks/workloads/eurosat.py`: the folder `CONVBENCH_EUROSAT`, otherwise made tiles",
        "sheet",
    ),
    System(
        "reader A: rasterio, clipped in NumPy", "`cpu.rasterio`", "times", calls("times", "cpu.rasterio", times=10), "605 ms"
    ),
    System("reader B: scikit-image, the same", "`cpu.skimage`", "times", calls("times", "cpu.skimage", times=10), "150 ms"),
    System(
        "reader C: scikit-image, normalised in torch",
        "`cpu.skimage_torch`",
        "times",
        calls("times", "cpu.skimage_torch", times=10),
        "139 ms",
    ),
    System(
        "",
        "`cpu.torch_dataloader`, `cpu.tifffile`, `cpu.tifffile_numba`",
        "times",
        calls("times", "cpu.torch_dataloader", "cpu.tifffile", "cpu.tifffile_numba", times=10),
    ),
    System(
        "",
        "`cpu.raw_numba`: a system call, one compiled pass; `cpu.memmap`, `cpu.mmap_numba`: packed once",
        "times",
        calls("times", "cpu.raw_numba", "cpu.memmap", "cpu.mmap_numba", times=10),
    ),
    System(
        "sweep of batches, threads and readers, one table",
        "`benchmarks/read_batch.py`; `convbench table --layout compare --bench read_batch`",
        "sweep",
    ),
    System("`timeit`, then `torch.utils.benchmark`'s Timer", "`benchmarks/timing/clock.py`", "clocks", _clocks),
    System(
        "a Dataset a reader under a shuffling DataLoader",
        "`impls/train_tiles/datasets.py`. Differs: rasterio opens a file a second time",
        "traces",
    ),
    System("classes by folder, a sheet of 25 tiles", "`python -m benchmarks tile_sheet`: [tiles.png](tiles.png)", "sheet"),
    System(
        "ResNet-18 by reader; loss and accuracy",
        "`train_tiles`; `python -m benchmarks tile_curves`: [curves](tile_training.png). Differs: batches of 16",
        "curves",
        _tile_training,
    ),
    System("`torch.profiler`, a trace a reader", "`python -m benchmarks tile_traces`", "traces", _waiting),
)
ADAM = (
    System(
        "profile first; call graph",
        "`convbench profile cpu.numpy perceptron-n100 --operation train_step --flat`; `--graph FILE.svg`",
        "profile",
        _shares,
        "update 59 %, products 25 %, fill 4 %",
    ),
    System(
        "nothing compiled",
        "`cpu.numpy`: `impls/train_step/perceptron.py`; `python -m benchmarks ladder`",
        "ladder",
        rungs("cpu.numpy"),
        "755 s",
    ),
    System(
        "the script compiled unchanged; with types",
        "`cpu.cython_untyped`, `cpu.cython_typed`",
        "script",
        rungs("cpu.cython_untyped", "cpu.cython_typed"),
        "800 s, 777 s",
    ),
    System(
        "the Adam update moved into Cython",
        "`cpu.cython_update`. Differs: how far theirs compiled it is not told",
        "move",
        rungs("cpu.cython_update"),
        "727 s",
    ),
    System("", "`cpu.cython_fused`: the update in one pass", "move", rungs("cpu.cython_fused")),
    System(
        "open wish: compiled functions inside the call graph",
        "`make profiled` ([profile.md](profile.md#inside-cython))",
        "profile",
    ),
    System(
        "the update alone, once",
        "`adam_step`: `cpu.numpy`, `cpu.cython_untyped`, `cpu.cython_typed`, `cpu.cython_fused`",
        "update",
        calls("update", "cpu.numpy", "cpu.cython_untyped", "cpu.cython_typed", "cpu.cython_fused"),
        "448 s in 12,000 steps",
    ),
    System(
        "",
        "`cpu.numpy_inplace`, `cpu.numba`, `cpu.torch_foreach`, `cpu.torch_fused`",
        "update",
        calls("update", "cpu.numpy_inplace", "cpu.numba", "cpu.torch_foreach", "cpu.torch_fused"),
    ),
)
VISION = (
    System(
        "pre- and post-process the whole image; only the region, pasted back",
        "`preprocess`: `cpu.numpy_whole`, `cpu.numpy`",
        "region",
        calls("region", "cpu.numpy_whole", "cpu.numpy"),
    ),
    System(
        "functions rewritten for batches, which gave nothing",
        "`cpu.numpy`, `cpu.numpy_batched`, `cpu.torch_batched`, an image of 16",
        "batches",
        calls("batches", "cpu.numpy", "cpu.numpy_batched", "cpu.torch_batched", times=1 / 16, inside="counts 16"),
        "nothing",
    ),
    System("OpenCV, torch", "`cpu.opencv`, `cpu.torch`", "fused", calls("fused", "cpu.opencv", "cpu.torch")),
    System(
        "Numba, Cython: functions fused into one pass",
        "`cpu.numba_fused`, `cpu.cython_fused`",
        "fused",
        calls("fused", "cpu.numba_fused", "cpu.cython_fused"),
    ),
    System(
        "a ufunc by hand; OpenCV without vector code; UMat",
        "`cpu.numpy_ufunc` (47 lines of C); `cpu.opencv_baseline`; `cpu.opencv_umat`",
        "fused",
        calls("fused", "cpu.numpy_ufunc", "cpu.opencv_baseline", "cpu.opencv_umat"),
    ),
    System(
        "JPEG decoding, whole or a region",
        "`decode_jpeg`: `cpu.opencv`, `cpu.pillow`, `cpu.libjpeg`, `cpu.libjpeg_region`",
        "decoders",
        calls("decoders", "cpu.opencv", "cpu.pillow", "cpu.libjpeg", "cpu.libjpeg_region"),
    ),
    System(
        "profilers; the cycle",
        "[profile.md](profile.md); `python -m benchmarks stages`. Differs: VTune and Nsight Systems were not run here",
        "stages",
    ),
    System(
        'the speed of light; "will a better CPU or GPU solve my problem?"',
        '`convbench/stored/roofline.py`; `python -m benchmarks bound \'{"operation": "preprocess"}\'`',
        "light",
        _bound,
    ),
    System(
        "GPU libraries, operators, transfers",
        "`gpu.cupy`, `gpu.cupy_batched`, `gpu.torch`; nvJPEG and DALI are not built",
        "device",
        lambda results: "" if results.get("device") else "no device",
    ),
    System("Intel's Python", "tried once (mkl_umath 0.5.0)", "light", None, "little"),
    System("hardware and versions", "`convbench doctor`", "light"),
)
SHIFTS = (
    System(
        "`F.conv2d`",
        "`impls/conv2d/cpu/torch.py`; `convbench try 1x3x427x640 3x3x3x3 NAMES` with `--padding 1`",
        "ways",
        calls("ways", "cpu.torch"),
        "400 to 1200 us (CUDA)",
    ),
    System("loops over pixels", "`impls/conv2d/cpu/loops.py`", "pixels", _loops, "1230 s"),
    System(
        "nine scaled images added without shifting",
        "`python -m benchmarks shifts`: [shifts.png](shifts.png)",
        "steps",
        lambda results: f"off by {percent(results['steps']['difference'])} of the range",
        "the wrong picture",
    ),
    System(
        "rolled and added; with slices",
        "`impls/conv2d/cpu/roll.py`, `impls/conv2d/cpu/shift.py`",
        "ways",
        calls("ways", "cpu.roll", "cpu.shift"),
        "838 us",
    ),
    System(
        "nine 1x1 products, rolled and added",
        "`impls/conv2d/cpu/roll_matmul.py`",
        "ways",
        calls("ways", "cpu.roll_matmul"),
        "782 us",
    ),
    System(
        "the same with slices, any kernel size",
        "`impls/conv2d/cpu/torch_shift_matmul.py`, on a device `gpu.torch_shift_matmul`; in NumPy `cpu.shift_matmul`",
        "ways",
        calls("ways", "cpu.torch_shift_matmul", "cpu.shift_matmul"),
        "769 us",
    ),
    System("", "`impls/conv2d/cpu/auto.py`: what is fastest here", "ways", calls("ways", "cpu.auto")),
    System(
        "left open: strides, transposed convolution",
        "`stride`; `impls/conv_transpose2d`",
        "strides",
        calls("strides", "cpu.shift", inside="problems transposed"),
    ),
    System("the photograph after each step, by implementation", "`python -m benchmarks gallery`", "steps"),
    System("the built-in layer", "`train_step`, `cpu.torch`", "training", trained("cpu.torch")),
    System(
        "`nn.Module` on top: one's own layer",
        "`impls/train_step/layers.py`; `cpu.torch_shift_matmul`, in NumPy `cpu.shift_matmul`",
        "training",
        trained("cpu.torch_shift_matmul"),
        "about 2x the built-in's time",
    ),
    System("", "`cpu.auto`: our convolution and gradients, fused Adam", "training", trained("cpu.auto")),
    System(
        "the text's own network on MNIST",
        "`text-n1000`; on a device `gpu.torch`. Differs: dropout's masks are a hash of place and step; small digits where "
        "MNIST is not",
        "training",
    ),
    System(
        'plots of accuracy and loss over time and steps; "a little bit more accurate, maybe random"',
        "`python -m benchmarks curves --seeds 5`; one start: `python -m benchmarks curves`",
        "training",
        None,
        "same accuracy",
    ),
)
SYSTEMS = {"loops": LOOPS, "readers": READERS, "adam": ADAM, "vision": VISION, "shifts": SHIFTS}


def of(story: str, step: str) -> list[tuple[str, str]]:
    """What a text has in a step, and what it is here."""
    return [(system.there, system.here) for system in SYSTEMS.get(story, ()) if system.step == step and system.there]
