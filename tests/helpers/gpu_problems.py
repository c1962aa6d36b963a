"""The problems that every GPU implementation is checked on, without a device and with one."""

import numpy as np

from benchmarks.workloads import oracle
from impls import checks
from impls.conv2d import arguments

DTYPES = ("float32", "float64")
LABELS = [
    *("n1c1h1w1k1r1s1", "n2c3h7w9k4r3s3", "n2c3h7w9k4r3s3p1", "n1c2h2w3k2r5s6p2", "n1c1h1w1k1r5s5p2"),
    *("n1c2h11w13k2r2s2t5", "n1c2h4w5k2r3s3t9p1", "n1c2h9w9k3r3s2t2p1x2d3", "n1c1h2w2k2r2s2p6d5", "n2c4h6w6k4r3s3p1g4"),
    *("n1c3h6w6k6r3s3g3", "n2c4h6w5k6r3s3p1g2", "n1c6h9w9k2r3s3t2p1d2g2", "n1c37h3w3k5r3s3p1", "n1c1h2w201k1r2s33p0x16"),
    *("n0c2h5w5k3r3s3", "n1c4h33w35k8r3s3p1", "n2c5h7w7k10r3s3p1g5", "n1c2h40w136k2r3s3t2p1g2", "n3c2h5w8k4r1s1"),
]
# Arguments that labels do not have, for arrays from whole_numbers().
SETTINGS = [{"padding": "same"}, {"padding": "same", "dilation": (2, 3)}, {"stride": (1, 3), "padding": (2, 0)}, {}]


def fractions(problem):
    random = np.random.default_rng(3)
    return [random.uniform(-1, 1, shape).astype(problem.dtype) for shape in (problem.input_shape, problem.weight_shape)]


def whole_numbers(dtype, limits=()):
    """Input, weight and bias whose every sum of products is exact, of a kernel and channels that are within the limits."""
    random, limits = np.random.default_rng(5), dict(limits)
    channels, kernel = limits.get("C/groups", 4), limits.get("kernel", (4, 2))
    shapes = (2, channels, 8, 9), (6, channels, *kernel), (6,)
    return [random.integers(-8, 9, shape).astype(dtype) for shape in shapes]


def lying_anyhow(array):
    """The same values in several memory orders."""
    yield array
    yield np.asfortranarray(array)
    yield array[..., ::-1].copy()[..., ::-1]
    if array.ndim == 4:
        yield np.ascontiguousarray(array.transpose(2, 0, 3, 1)).transpose(1, 3, 0, 2)


def judge(problem, family, function):
    """Compare what function(input, weight) returns with the oracle's reference."""
    input, weight = fractions(problem)
    oracle.compare(problem, family, oracle.reference(problem, input, weight), function(input, weight))


def outside(declared, problem):
    """Why a declared implementation cannot do a problem, or None."""
    shapes = problem.input_shape, problem.weight_shape
    return arguments.unsupported(declared["limits"], *shapes, dtype=problem.dtype, **problem.arguments)


def in_one_form(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The arguments after the arrays as a function under its decorator gets them."""
    settings = checks.plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
    found = arguments.geometry(tuple(input.shape), tuple(weight.shape), *settings)
    return found.stride, found.padding, found.dilation, groups
