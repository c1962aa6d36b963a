"""Rules for problems without measurements, and that the pick can compute the problem."""

import pytest
from auto_tables import LAYER
from cases import case
from choices import PROBLEMS, asked

import impls
from benchmarks.workloads.problems import Problem
from impls.conv2d import choice, rules


@pytest.mark.parametrize("there", [{}, {("neon", 1): [LAYER]}, {("avx9", 1): []}])
def test_a_rule_where_nothing_was_measured(table, there):
    table(there)
    found = impls.explain((1, 1, 64, 64), (1, 1, 3, 3))
    assert (found.alike, found.measurements) == ((), None)
    assert found.implementation.name in rules.RULES["few channels"]
    assert "by rule: few channels; nothing was measured with avx9" in str(found)


FOR_WIDE_VECTORS = ["n1c15h99w99k16r3s3", "n2c90h99w99k18r3s3t2g2", "n9c8h300w300k20r3s3", "n9c7h300w300k33r3s3t3"]


LARGER = ["n1c32h7w71k256r5s5", "n1c32h62w62k56r5s5", "n1c32h62w62k56r5s5t2", "n8c16h60w60k16r7s3d2"]


NARROW = [
    "n1c7h99w99k6r3s3t2",
    "n1c7h99w99k3r3s3t3",
    *(f"n9c1h999w999k9r3s3{stride}" for stride in ("", "t2")),
    *(f"n9c{c}h300w300k{k}r3s3t2" for c, k in ((4, 20), (5, 19), (5, 20))),
    "n9c5h300w300k20r3s3",
    "n9c6h300w96k9r3s3t3",
    "n9c6h300w95k9r3s3t3",
    "n9c6h300w300k9r7s7t3",
    "n9c7h300w300k32r3s3t3",
    "n9c8h300w65k4r3s3t2",
    "n9c8h300w64k4r3s3t2",
    "n1c8h300w300k4r6s8",
    "n1c8h300w300k4r7s7",
    "n9c1h999w999k8r3s3",
    "n9c1h999w999k8r3s3t2",
    "n1c8h97w97k8r3s3",
    "n4c16h999w11k16r3s3g2",
    "n1c8h300w300k4r3s3t2",
]


NOT_WIDE = ["n4c16h999w10k16r3s3g2", "n1c90h99w99k16r3s3t2g2", "n2c90h99w99k14r3s3t2g2", "n1c9h97w97k8r3s3"]


FEW_CHANNELS = ["n1c6h8w8k3r3s3p1", "n2c6h8w8k2r3s3p1", "n2c2h8w8k3r3s3p1", "n2c6h8w9k3r3s3p1", "n2c6h8w8k3r1s1"]


WITH_WIDE_VECTORS = {
    "n2c3h8w8k3r3s3p1": "small layer",
    "n1c10h200w200k14r3s3t3": "layer for wide vectors",
    "n1c16h99w99k2r3s3": "3x3 layer",
    **dict.fromkeys(NOT_WIDE, "large layer"),
    "n8c445h99w99k27r3s3": "layer for wide vectors",
    **dict.fromkeys(["n8c768h3w2k768r3s3p1", "n32c96h10w10k16r3s3p2d2"], "layer for wide vectors"),
    "n1c64h8w16k64r7s7p3": "layer for wide vectors",
    **dict.fromkeys(["n1c5h25w40k17r3s3p1", "n1c5h60w60k9r3s3t3", "n64c8h25w40k8r3s3p1"], "narrow layer along channels"),
    **dict.fromkeys(["n1c5h26w39k17r3s3p1", "n1c5h25w40k16r3s3p1", "n1c5h99w99k17r10s10"], "narrow layer"),
    "n1c32h14w24k256r5s5": "layer for wide vectors",
    **dict.fromkeys(["n1c128h99w99k16r1s1t2", "n1c1199h99w99k8r1s1t2"], "1x1 layer"),
    **dict.fromkeys([f"n1c{c}h62w62k56r5s5" for c in (15, 160, 161)], "layer for wide vectors"),
    **dict.fromkeys(["n1c32h62w62k56r5s5t3", "n1c32h62w62k56r13s3"], "layer for wide vectors"),
    **dict.fromkeys(["n1c999h3w5k999r1s1", "n1c200h99w99k2r1s1", "n1c20h99w99k20r1s1p1"], "layer for wide vectors"),
    **dict.fromkeys([*FOR_WIDE_VECTORS, *LARGER], "layer for wide vectors"),
    **dict.fromkeys(NARROW, "narrow layer"),
}


WITHOUT_KERNELS = {"n1c6h99w99k6r3s3t3": "small layer"}


@pytest.mark.parametrize(
    ("label", "kind"),
    [
        ("n1c6h99w99k6r3s3t2", "few channels"),
        ("n1c2h50w55k2r3s3p1", "few channels"),  # 198,000 FLOPs
        ("n1c2h50w56k2r3s3p1", "few channels"),  # 201,600
        *dict.fromkeys(["n2c3h8w8k3r3s3p1", *FEW_CHANNELS], "few channels").items(),
        ("n1c7h99w99k6r3s3t2", "small layer"),
        ("n1c3h99w99k3r3s3t3", "few channels"),
        ("n1c6h99w99k6r3s3t3", "few channels"),
        ("n1c7h99w99k3r3s3t3", "small layer"),
        ("n9c1h999w999k9r3s3", "few channels"),
        ("n9c1h999w999k9r3s3t2", "few channels"),
        ("n9c1h999w999k8r3s3", "few channels"),
        ("n9c1h999w999k8r3s3t2", "few channels"),
        ("n1c16h99w99k16r3s3", "3x3 layer"),
        ("n1c16h99w99k16r3s3d2", "3x3 layer"),
        ("n1c16h99w99k16r3s3t2d8", "3x3 layer"),
        ("n1c16h99w99k16r3s3d5", "small layer"),
        ("n8c768h4w2k768r3s3p1", "3x3 layer"),  # half of Winograd's tiles
        ("n8c768h3w2k768r3s3p1", "large layer"),
        ("n32c96h10w10k16r3s3p2d2", "larger kernel on few pixels"),  # 100 pixels of four tiles for each of four images
        ("n1c16h99w99k16r3s3t2d3", "small layer"),
        ("n1c16h99w99k2r3s3", "small layer"),
        ("n1c16h99w99k8r3s3", "3x3 layer"),
        ("n1c16h7w16k16r3s3p1", "small layer"),  # 112 pixels
        ("n1c16h7w17k16r3s3p1", "3x3 layer"),
        ("n1c512h7w7k512r3s3p1", "3x3 layer"),  # 231 million
        ("n1c99h4w4k99r3s3p1", "few pixels"),
        ("n1c99h9w17k99r3s3t2", "few pixels"),
        ("n1c99h4w5k99r3s3p1", "small layer"),
        ("n2c99h4w4k99r3s3p1", "small layer"),
        ("n8c445h99w99k27r3s3", "3x3 layer"),  # 4005 taps
        ("n8c444h99w99k27r3s3", "3x3 layer"),  # 3996
        ("n7c445h99w99k27r3s3", "3x3 layer"),
        ("n8c445h99w99k28r3s3", "3x3 layer"),
        ("n1c64h8w16k64r7s7p3", "larger kernel on few pixels"),
        ("n1c5h25w40k17r3s3p1", "small layer"),  # 1000 pixels
        ("n1c5h26w39k17r3s3p1", "small layer"),  # 1014
        ("n1c5h25w40k16r3s3p1", "small layer"),
        ("n1c5h60w60k9r3s3t3", "small layer"),
        ("n64c8h25w40k8r3s3p1", "narrow layer"),
        ("n1c5h99w99k17r10s10", "narrow layer along channels"),  # 100 taps
        ("n1c5h99w99k17r10s11", "narrow layer along channels"),
        ("n1c15h99w99k16r3s3", "large layer"),  # 40.6 million FLOPs
        ("n2c90h99w99k18r3s3t2g2", "grouped layer"),  # no fewer products by Winograd
        *dict.fromkeys(LARGER, "larger kernel").items(),  # the first on 201 pixels
        ("n1c32h62w62k56r5s5t3", "large layer"),
        ("n1c32h62w62k56r13s3", "large layer"),
        ("n1c160h62w62k56r5s5", "larger kernel"),  # 4000 taps
        ("n1c161h62w62k56r5s5", "large layer"),
        ("n1c15h62w62k56r5s5", "large layer"),
        ("n1c32h14w24k256r5s5", "larger kernel on few pixels"),  # 200
        ("n1c90h99w99k16r3s3t2g2", "small layer"),  # 8 outputs a group, 31 million
        ("n2c90h99w99k14r3s3t2g2", "grouped layer"),  # 7
        ("n1c15h98w98k16r3s3", "small layer"),  # 39.8 million
        ("n1c8h97w97k8r3s3", "narrow layer"),  # 10.4 million
        ("n1c8h95w95k8r3s3", "small layer"),  # 9.96 million
        ("n4c16h999w11k16r3s3g2", "narrow layer"),  # 9 columns
        ("n4c16h999w10k16r3s3g2", "grouped layer"),  # 8
        ("n1c8h300w300k4r3s3t2", "narrow layer"),
        ("n9c8h300w65k4r3s3t2", "narrow layer"),  # 32 columns
        ("n9c8h300w64k4r3s3t2", "narrow layer along channels"),  # 31
        ("n9c4h300w300k20r3s3t2", "narrow layer"),  # 36 taps
        ("n9c5h300w300k19r3s3t2", "narrow layer"),
        ("n9c5h300w300k20r3s3t2", "narrow layer along channels"),  # 45 taps
        ("n9c5h300w300k20r3s3", "narrow layer"),
        ("n1c8h300w300k4r6s8", "narrow layer"),
        ("n1c8h300w300k4r7s7", "narrow layer along channels"),
        ("n1c8h400w400k4r3s3t3", "large layer"),
        ("n9c6h300w96k9r3s3t3", "narrow layer"),  # 32 columns
        ("n9c6h300w95k9r3s3t3", "large layer"),  # 31
        ("n9c6h300w300k9r7s7t3", "large layer"),
        ("n9c8h300w300k20r3s3", "narrow layer"),
        ("n9c7h300w300k32r3s3t3", "large layer"),
        ("n9c7h300w300k33r3s3t3", "large layer"),
        ("n1c9h97w97k7r3s3", "large layer"),
        ("n1c9h97w97k8r3s3", "small layer"),
        ("n1c8h97w97k9r3s3", "small layer"),
        ("n1c999h99w99k999r1s1", "1x1 layer"),
        ("n1c20h100w101k10r1s1", "1x1 layer"),
        ("n1c50h200w202k40r1s1t2", "1x1 layer"),
        ("n1c999h4w4k999r1s1", "1x1 layer"),
        ("n1c999h3w5k999r1s1", "large layer"),  # 15 pixels
        ("n1c200h99w99k3r1s1", "1x1 layer"),
        ("n1c128h99w99k16r1s1t2", "1x1 layer along channels"),
        ("n1c1199h99w99k8r1s1t2", "1x1 layer along channels"),
        ("n1c127h99w99k16r1s1t2", "1x1 layer"),
        ("n1c128h99w99k15r1s1t2", "1x1 layer"),
        ("n1c1200h99w99k16r1s1t2", "1x1 layer"),
        ("n1c100h99w99k2r1s1", "small layer"),  # 3.9 million
        ("n1c200h99w99k2r1s1", "large layer"),
        ("n1c20h99w99k20r1s1p1", "large layer"),  # padded
        ("n1c20h100w101k2r1s1t3p1", "small layer"),
        ("n1c10h200w200k14r3s3t3", "large layer"),  # 11 million
    ],
)
def test_which_rule_holds(label, kind):
    problem = asked(Problem.parse(label))
    assert rules.kind(problem, "avx2") == kind
    assert rules.kind(problem, None) == WITHOUT_KERNELS.get(label, kind)
    assert rules.kind(problem, "avx512") == WITH_WIDE_VECTORS.get(label, kind)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("by_rule", [False, True])
def test_what_is_picked_can_compute_it(exact, by_rule):
    for problem in PROBLEMS:
        found = choice.choose(asked(problem), 1, exact, by_rule)
        with case(problem.label):
            assert found.implementation.device == "cpu"
            assert found.implementation.unsupported(problem.input_shape, problem.weight_shape, **problem.arguments) is None
            assert found.implementation.name != "cpu.auto"
            if exact:
                picked = found.implementation.name, found.runner_up
                assert not {impls.load(name).family for name in picked} & {"winograd", "fft"}
            if by_rule:
                assert found.alike == ()
