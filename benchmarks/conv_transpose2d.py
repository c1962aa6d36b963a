"""conv_transpose2d: the layers that generators and decoders enlarge images with.

A label reads as the transpose of that convolution: n1c256h16w16k512r4s4t2p1 takes (1, 512, 8, 8) to (1, 256, 16, 16).
"""

from __future__ import annotations

from benchmarks.harness.base import _Cells, named
from benchmarks.workloads.problems import load_set

SETS = ("dcgan", "unet")


class Layers(_Cells):
    """The layers of a generator and of a decoder, a layer that keeps the size, and one that ends at MNIST's 28x28 pixels."""

    operation = "conv_transpose2d"
    problems = {
        **{f"{name}/{title}": problem for name in SETS for title, problem in load_set(name).items()},
        **named("n1c64h56w56k64r3s3p1", "n100c1h28w28k32r4s4t2p1"),
    }
    quick = ("dcgan/n16c64h32w32k128r4s4t2p1",)
