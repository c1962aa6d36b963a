"""Implementations of convolution and its neighbours, one file each, found by name.

>>> import impls
>>> output = impls.conv2d(input, weight, padding="same")  # by whichever is fastest here
>>> print(impls.explain(input, weight, padding="same"))  # which that is, and why
>>> impls.tune(input, weight, padding="same")  # measured here, and remembered for impls.conv2d
>>> impls.names("conv2d", device="cpu")
>>> convolve = impls.load("cpu.numba_direct")
>>> output = convolve(input, weight, padding="same")

Importing this package needs NumPy alone; each implementation imports its library when it is loaded.
"""

from impls import levels  # noqa: F401  # by which the others find their kernels

# isort: split
from impls import conv2d, forks
from impls.contract import Implementation, Unavailable, load, load_file, names, wrap
from impls.conv2d.choice import explain
from impls.conv2d.cpu import auto  # noqa: F401  # which impls.conv2d(...) calls
from impls.conv2d.tuning import tune

forks.register()

__all__ = ["Implementation", "Unavailable", "conv2d", "explain", "load", "load_file", "names", "tune", "wrap"]
