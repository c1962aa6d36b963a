"""The kernels on aarch64, in an emulator: their headers compiled for it, over small problems of the named sets."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from benchmarks.workloads import oracle
from benchmarks.workloads.problems import Problem, load_set

ROOT = Path(__file__).parents[2]
DRIVER = ROOT / "tests" / "helpers" / "kernel_driver.c"
HEADERS = ROOT / "impls" / "conv2d" / "cpu"
COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"
OPTIONS = ["-O1", "-ffp-contract=fast", "-std=c11", "-static", "-fopenmp"]
MAX_FLOPS = 60_000_000  # a second in the emulator
SETS = ("deepbench", "filters", "mnist", "mobilenet", "resnet50", "unet", "vgg16")
# What the sets have at this size: the rest are odd sizes, several images and groups, one and two outputs, and long rows.
OTHERS = (
    "n2c5h13w17k7r3s3t2p1",
    "n2c6h9w11k8r5s5p2g2",
    "n1c19h23w29k1r1s1",
    "n2c7h9w9k2r1s1",
    "n1c40h20w20k33r1s1",
    "n1c24h15w15k20r1s1t2",
    "n2c16h12w14k16r3s3p1g16",
    "n1c2h6w700k3r3s3p1",
    "n1c3h20w22k5r3s3p2d2",
    "n1c4h30w30k6r7s7p3",
    "n1c70h8w8k50r3s3p1",
)
KERNELS = {"DIRECT": "direct", "PACKED": "direct", "WINOGRAD": "winograd"}
pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(
        not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
        reason=f"{COMPILER} or {EMULATOR} is missing: apt-get install gcc-aarch64-linux-gnu qemu-user",
    ),
]


def problems(kernel, dtype):
    named = {problem.label for name in SETS for problem in load_set(name).values() if problem.flops <= MAX_FLOPS}
    found = [Problem.parse(label, dtype=dtype) for label in sorted(named) + list(OTHERS)]
    return [one for one in found if kernel != "WINOGRAD" or (one.stride <= 2 and min(one.r, one.s) > 1)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_is_right_for_neon(kernel, dtype, tmp_path):
    program = tmp_path / "driver"
    selected = [f"-D{kernel}", *["-DDOUBLE"] * (dtype == "float64")]
    subprocess.run([COMPILER, *OPTIONS, *selected, f"-I{HEADERS}", DRIVER, "-o", program], check=True)
    asked, known = [], []
    for problem in problems(kernel, dtype):
        generator = np.random.default_rng(0)
        x, w = (generator.uniform(-1, 1, shape).astype(dtype) for shape in (problem.input_shape, problem.weight_shape))
        sizes = (problem.c // problem.groups, problem.k // problem.groups, problem.h, problem.w, problem.r, problem.s)
        numbers = (problem.n, problem.groups, *sizes, problem.stride, problem.dilation, *problem.padding)
        asked.append(np.array(numbers, np.int64).tobytes() + x.tobytes() + w.tobytes() + np.zeros(problem.k, dtype).tobytes())
        known.append((problem, oracle.reference(problem, x, w)))
    done = subprocess.run([EMULATOR, program], input=b"".join(asked), capture_output=True, check=True)
    outputs = np.frombuffer(done.stdout, dtype)
    assert outputs.size == sum(problem.outputs for problem, _ in known)
    for problem, reference in known:
        output, outputs = outputs[: problem.outputs], outputs[problem.outputs :]
        oracle.compare(problem, KERNELS[kernel], reference, output.reshape(problem.output_shape))
