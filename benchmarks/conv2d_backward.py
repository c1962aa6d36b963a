"""conv2d_backward: the cost of training a layer beside conv2d itself."""

from __future__ import annotations

from benchmarks.harness.base import _Cells, named


class Layers(_Cells):
    """A first layer on MNIST, layers of ResNet-50 and MobileNet, and a filter that is learnt on one large image."""

    operation = "conv2d_backward"
    problems = named(
        "n100c1h28w28k32r3s3",
        "n1c64h56w56k64r3s3p1",
        "n1c256h14w14k1024r1s1",
        "n1c128h56w56k128r3s3p1g128",
        "n1c1h1024w1024k1r3s3p1",
    )
    quick = ("n1c64h56w56k64r3s3p1",)
