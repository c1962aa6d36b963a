"""Rules for machines without measurements, and that the pick can compute the problem."""

import pytest
from auto_tables import HERE, LAYER
from cases import case
from choices import PROBLEMS, asked

import impls
from benchmarks.workloads.problems import Problem
from impls.conv2d import choice, rules


@pytest.mark.parametrize("there", [{}, {"neon": [LAYER]}, {("neon", HERE): []}])
def test_a_rule_where_nothing_was_measured(table, there):
    table(there)
    found = impls.explain((1, 1, 64, 64), (1, 1, 3, 3))
    assert (found.by, found.implementation.name in rules.FEW_CHANNELS.names) == ("rules", True)
    assert str(found).splitlines()[2:4] == [f"by rule: {rules.FEW_CHANNELS.why}", "nothing was measured with avx9"]


@pytest.mark.parametrize(
    ("label", "rule"),
    [
        ("n9c1h99w99k99r3s3t2", rules.FEW_CHANNELS),
        ("n1c64h99w99k64r3s3g64", rules.FEW_CHANNELS),
        ("n1c7h99w99k7r3s3t2", rules.FEW_CHANNELS),
        ("n1c7h99w99k8r3s3", rules.FEW_CHANNELS),
        ("n1c7h99w99k8r3s3t2", rules.LAYER),
        ("n1c8h99w99k7r3s3", rules.LAYER),
        ("n1c8h99w99k8r1s1", rules.POINTWISE),
        ("n1c8h99w99k8r1s1p1", rules.LAYER),
        ("n1c64h56w56k64r3s3p1", rules.WINOGRAD),
        ("n1c64h56w56k64r3s3t2p1", rules.LAYER),
        ("n1c64h56w56k64r3s3p1d2", rules.WINOGRAD),
        ("n1c64h56w56k64r3s3p1d5", rules.LAYER),  # no tiles
        ("n1c64h56w56k4r3s3p1", rules.LAYER),  # transforms for few outputs
        ("n1c512h3w3k512r3s3p1", rules.LAYER),  # transforms of weights for one tile
        ("n1c64h5w5k64r3s3p1", rules.LAYER),  # tiles that are half empty
        ("n1c64h56w56k64r5s5p2", rules.WINOGRAD),
        ("n1c64h56w56k64r13s3p2", rules.LAYER),
    ],
)
def test_which_rule_holds(label, rule):
    assert rules.rule(asked(Problem.parse(label))) == rule


@pytest.mark.parametrize(
    ("label", "products"),
    [("n1c8h4w4k8r3s3p1", 36), ("n1c8h8w4k8r3s3p1", 72), ("n1c8h5w4k8r3s3p1", 72), ("n1c8h4w4k8r5s5p2", 121)],
)
def test_the_products_that_winograd_saves(monkeypatch, label, products):
    """Of the transforms nothing counts: tiles of 4x4 outputs with 36 products of 3x3 taps each, and 121 of 5x5."""
    monkeypatch.setattr(rules, "TRANSFORM", 0)
    monkeypatch.setattr(rules, "WEIGHTS", 0)
    problem = Problem.parse(label)
    assert rules.gain(asked(problem)) == pytest.approx(problem.h * problem.w * problem.r * problem.s / products)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("source", ["wisdom", "shipped", "rules"])
def test_what_is_picked_can_compute_it(exact, source):
    for problem in PROBLEMS:
        found = choice.choose(asked(problem), 1, exact, source)
        with case(problem.label):
            assert found.implementation.device == "cpu"
            assert found.implementation.unsupported(problem.input_shape, problem.weight_shape, **problem.arguments) is None
            assert found.implementation.name in rules.NAMES
            if exact:
                picked = found.implementation.name, found.runner_up
                assert not {impls.load(name).family for name in picked} & {"winograd", "fft"}
            assert (found.by == "rules") >= (source == "rules")
