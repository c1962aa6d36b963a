"""Implementations of convolution and its neighbours, one file each, found by name.

>>> import impls
>>> impls.names("conv2d", device="cpu")
>>> convolve = impls.load("cpu.numba_direct")
>>> output = convolve(input, weight, padding="same")

Importing this package needs NumPy alone; each implementation imports its library when it is loaded.
"""

from impls.contract import Implementation, Unavailable, load, names, wrap

__all__ = ["Implementation", "Unavailable", "load", "names", "wrap"]
