"""conv2d: cheap sweeps along one axis around a base point, layers of known networks, memory and start-up."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.harness.base import _Cells, named
from benchmarks.timing import cuda_clock, memory, startup
from benchmarks.timing.clock import Cold
from benchmarks.timing.threads import COUNTS, resolve
from benchmarks.workloads import inputs
from benchmarks.workloads.problems import Problem, load_set

SETS = ("filters", "mnist", "resnet50", "vgg16", "mobilenet", "deepbench")


def _along(template: str, *values: int, **data) -> dict[int, Problem]:
    """Problems along one axis: {0} in the label is the axis's value, {1} half of it, for padding."""
    return {value: Problem.parse(template.format(value, value // 2), **data) for value in values}


class ImageSize(_Cells):
    """A 3x3 box filter on a photograph of one channel, 7x7 to 4096x4096."""

    axis = "size"
    problems = {
        f"{h}x{w}": Problem.parse(f"n1c1h{h}w{w}k1r3s3p1", data="photo", filter="box")
        for h, w in [
            *((n, n) for n in (7, 16, 32, 64, 128, 256, 512, 1024)),
            *((1080, 1920), (2048, 2048), (2160, 3840), (4096, 4096)),
        ]
    }
    quick = ("64x64", "1080x1920")


class KernelSize(_Cells):
    """A box filter of growing size on a photograph of 512x512."""

    axis = "kernel"
    problems = _along("n1c1h512w512k1r{0}s{0}p{1}", 1, 3, 5, 7, 9, 11, 15, 21, 31, data="photo", filter="box")
    quick = (15,)


class Batch(_Cells):
    """MNIST's images through a first layer of 32 channels, one image to 1000."""

    axis = "batch"
    problems = _along("n{0}c1h28w28k32r3s3", 1, 3, 10, 30, 100, 300, 1000)


class Channels(_Cells):
    """A 3x3 layer on 28x28 pixels with as many channels out as in, 1 to 512."""

    axis = "channels"
    problems = _along("n1c{0}h28w28k{0}r3s3p1", 1, 3, 8, 16, 32, 64, 128, 256, 512)


class Threads(_Cells):
    """Three problems on one thread to all the machine's cores."""

    problems = {
        "n1c1h1080w1920k1r3s3p1": Problem.parse("n1c1h1080w1920k1r3s3p1", data="photo", filter="box"),
        **named("n1c64h56w56k64r3s3p1", "n1000c1h28w28k3r3s3"),
    }
    further = {"threads": COUNTS}

    def setup(self, implementation, value, count):
        self.cell = cell.prepare(implementation, self.problems[value], resolve(count))


class Layers(_Cells):
    """The layers of named networks and common filters; their sources are in sets/."""

    problems = {f"{name}/{title}": problem for name in SETS for title, problem in load_set(name).items()}
    quick = (
        "mnist/n1000c1h28w28k3r3s3",
        "resnet50/n1c64h56w56k64r3s3p1",
        "mobilenet/n1c128h56w56k128r3s3p1g128",
    )


class ColdCache(_Cells):
    """Calls whose data has left the caches: a buffer larger than the last of them is rewritten before each."""

    problems = named("n1c1h256w256k1r3s3p1", "n1c64h56w56k64r3s3p1", "n1c512h7w7k512r3s3p1", "n1000c1h28w28k3r3s3")
    number = 1
    warmup_time = 0
    repeat = (5, 20, 0.2)

    def setup(self, implementation, value):
        super().setup(implementation, value)
        if self.cell.on_device:
            self.cell.block = cuda_clock.Queued(self.cell.call, cuda_clock.of(self.cell.arrays), cold=True)
        else:
            self.cell.block = Cold(self.cell.call)


class Device(_Cells):
    """Problems that judge devices: large filters, depthwise layers and dense 3x3 layers of batches. GPU implementations."""

    problems = {
        **named(*(f"n1c1h8192w8192k1r{r}s{r}p{r // 2}" for r in (3, 5, 7))),
        **named(*(f"n8c1h2160w3840k1r{r}s{r}p{r // 2}" for r in (3, 5, 7))),
        **named("n16c64h512w512k64r3s3p1g64"),
        **{p.label: p for p in (replace(p, n=32) for p in load_set("mobilenet").values() if p.groups > 1)},
        **{
            p.label: p
            for name in ("resnet50", "vgg16")
            for p in (replace(p, n=16) for p in load_set(name).values() if p.r == 3)
        },
    }
    quick = ("n1c1h8192w8192k1r3s3p1", "n32c128h56w56k128r3s3p1g128", "n16c64h56w56k64r3s3p1")
    rounds = 1
    baseline = "gpu.torch"
    device = "cuda"

    def setup(self, implementation, value):
        if cell.declarations()[implementation].get("device") == "cpu":
            raise Skip("not measured here: these are for devices")
        super().setup(implementation, value)


class Launches(_Cells):
    """GPU implementations by the host's clock: calls as everywhere else, launched one by one and waited for at the end."""

    problems = named("n1c1h64w64k1r3s3p1", "n1c1h1080w1920k1r3s3p1", "n1c64h56w56k64r3s3p1", "n1000c1h28w28k3r3s3")
    quick = ("n1c1h64w64k1r3s3p1",)
    rounds = 1
    baseline = "gpu.torch"
    device = "cuda"

    def setup(self, implementation, value):
        super().setup(implementation, value)
        if not self.cell.on_device:
            raise Skip("not measured here: on the CPU every class is by the host's clock")
        self.cell.block = cuda_clock.Launched(self.cell.call, cuda_clock.of(self.cell.arrays))


class Memory(_Cells, name="track_peak_extra_bytes", function=memory.track):
    """The most memory one call needs at a time beyond its input, weight and output."""

    unit = "bytes"
    rated = False
    problems = named("n1c1h1080w1920k1r3s3p1", "n1c1h1080w1920k1r7s7p3", "n1c64h56w56k64r3s3p1", "n1000c1h28w28k3r3s3")


class Startup(_Cells, name="time_import_and_first_call"):
    """Import and first call in a fresh interpreter, with Numba's cache on disk empty and filled."""

    problems = named("n1c1h64w64k1r3s3p1")
    further = {"numba_cache": ("empty", "filled")}
    rated = False
    number = 1
    warmup_time = 0
    repeat = 3
    rounds = 1

    def setup(self, implementation, value, numba_cache):
        super().setup(implementation, value)
        if self.cell.on_device:
            raise Skip("not measured here: the fresh interpreter works on NumPy arrays")
        problem = self.problems[value]
        self.cell.block = startup.Restart(implementation, inputs.make(problem), problem.arguments, numba_cache)
