"""Problems are data: their labels, shapes and work, and the named sets of them."""

import json
import math
import tomllib

import numpy as np
import pytest
from hypothesis import given, settings
from references import by_torch, some

from benchmarks.workloads import oracle, problems
from benchmarks.workloads.problems import Problem

SETS = sorted(path.stem for path in problems.SETS.glob("*.toml"))


@settings(max_examples=60, deadline=None)
@given(problem=some())
def test_a_label_says_it_all(problem):
    again = Problem.parse(problem.label, dtype=problem.dtype)
    assert again == problem
    assert again.label == problem.label
    assert " " not in problem.label


@settings(max_examples=60, deadline=None)
@given(problem=some())
def test_work_and_shapes_are_those_of_the_output(problem):
    input, weight = (np.ones(shape, problem.dtype) for shape in (problem.input_shape, problem.weight_shape))
    output = by_torch(problem, input, weight).astype(problem.dtype)
    assert problem.output_shape == output.shape
    assert problem.outputs == output.size
    assert problem.taps == weight[0].size
    assert problem.flops == 2 * output.size * weight[0].size
    assert problem.bytes == input.nbytes + weight.nbytes + output.nbytes


@pytest.mark.parametrize(
    ("label", "dtype", "input", "weight", "output", "flops", "size"),
    [
        # 64 x 112 x 112 outputs of 3 x 7 x 7 taps; 4 bytes for each of 150 528 + 9 408 + 802 816 numbers
        (
            *("n1c3h224w224k64r7s7t2p3", "float32", (1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112)),
            *(236_027_904, 3_851_008),
        ),
        (
            *("n1c32h112w112k32r3s3p1g32", "float32", (1, 32, 112, 112), (32, 1, 3, 3), (1, 32, 112, 112)),
            *(7_225_344, 3_212_416),
        ),
        (
            *("n4c1h161w700k32r5s20t2", "float32", (4, 1, 161, 700), (32, 1, 5, 20), (4, 32, 79, 341)),
            *(689_638_400, 15_608_768),
        ),
        ("n1c1h5w7k1r3s3p0x2d2", "float64", (1, 1, 5, 7), (1, 1, 3, 3), (1, 1, 1, 7), 126, 408),
        ("n1c64h56w56k256r1s1", "float32", (1, 64, 56, 56), (256, 64, 1, 1), (1, 256, 56, 56), 102_760_448, 4_079_616),
        ("n0c1h5w5k1r3s3", "float32", (0, 1, 5, 5), (1, 1, 3, 3), (0, 1, 3, 3), 0, 36),
        ("n1c1h1w1k1r1s1", "float64", (1, 1, 1, 1), (1, 1, 1, 1), (1, 1, 1, 1), 2, 24),
    ],
)
def test_shapes_and_work_by_hand(label, dtype, input, weight, output, flops, size):
    problem = Problem.parse(label, dtype=dtype)
    assert (problem.input_shape, problem.weight_shape, problem.output_shape) == (input, weight, output)
    assert (problem.flops, problem.bytes) == (flops, size)
    described = {"label": label, "output": list(output), "flops": flops, "bytes": size, "dtype": dtype}
    assert problem.describe() == described == json.loads(json.dumps(described))


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ("n1c2h3w4k5r1s1t1p0d1g1", "n1c2h3w4k5r1s1"),
        ("n1c2h3w4k5r1s1p2x2", "n1c2h3w4k5r1s1p2"),
        ("n1c2h3w4k5r1s1p2x0", "n1c2h3w4k5r1s1p2x0"),
        ("n01c2h3w4k5r1s1", "n1c2h3w4k5r1s1"),
    ],
)
def test_one_shape_has_one_label(written, label):
    assert Problem.parse(written).label == label


@pytest.mark.parametrize(
    "label",
    [
        *("", "n1", "conv1", "n1c2h3w4k5r1", "c2h3w4k5r1s1", "N1C2H3W4K5R1S1", " n1c2h3w4k5r1s1", "n1c2h3w4k5r1s1 "),
        *("n1c2h3w4k5r1s1\n", "n-1c2h3w4k5r1s1", "n1.5c2h3w4k5r1s1", "n1c2h3w4k5r1s1d2p1", "n1c2h3w4k5r1s1p1x"),
        *("n1c2h3w4k5r1s1t", "n1c2h3w4k5r1s1x2", "n1c2h3w4k5r1s1t2x2", "n1c2h3w4k5r1s1g2g2", "n1_c2_h3_w4_k5_r1_s1"),
    ],
)
def test_what_is_no_label_is_refused(label):
    with pytest.raises(ValueError, match="is not a problem's label; one looks like n1c64h56w56k64"):
        Problem.parse(label)


@pytest.mark.parametrize("name", SETS)
def test_sets_load(name):
    entries = tomllib.loads((problems.SETS / f"{name}.toml").read_text())["problem"]
    found = problems.load_set(name)
    assert len(found) == len(entries) > 0  # no name twice
    assert list(found) == [entry.get("name", entry["label"]) for entry in entries]
    assert len(set(found.values())) == len(found)  # no problem twice
    for title, problem in found.items():
        assert problem.label in title
        assert min(problem.output_shape) > 0
        assert min(problem.input_shape) > 0
        assert min(problem.weight_shape) > 0
        assert problem.c % problem.groups == problem.k % problem.groups == 0
        assert problem.flops == 2 * math.prod(problem.output_shape) * math.prod(problem.weight_shape[1:])
        assert problem.data in {"random", "photo"}
        assert problem.dtype in oracle.UNIT
        json.dumps(problem.describe())


def test_there_are_sets():
    assert {"deepbench", "filters", "mnist", "mobilenet", "resnet50", "vgg16"} <= set(SETS)
    resnet = problems.load_set("resnet50")
    assert len(resnet) == 23
    assert resnet["n1c3h224w224k64r7s7t2p3"] == Problem(1, 3, 224, 224, 64, 7, 7, stride=2, padding=(3, 3))
    assert all(problem.data == "photo" for problem in problems.load_set("filters").values())
