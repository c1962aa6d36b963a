"""Every CPU implementation for the tests of the family, and the drop-in impls.conv2d itself.

And one whose arguments are checked in Python, as all are where nothing is compiled.
"""

import dataclasses
import functools
from unittest import mock

import pytest

import impls
from impls.conv2d import arguments

loops = impls.load("cpu.loops").unchecked
with mock.patch.object(arguments, "compiled", None):
    in_python = arguments.checker("numpy", {}, loops)

# By name: the function, and the family by which it is judged. Sums of products alone are exact on whole numbers.
DROP_INS = {
    "impls.conv2d": (impls.conv2d, "auto"),
    "impls.conv2d, exact": (functools.partial(impls.conv2d, exact=True), "direct"),
    "cpu.loops, checked in Python": (in_python, "direct"),
}
NAMES = [*impls.names(device="cpu"), *DROP_INS]


def load(name):
    """An implementation or a drop-in in an implementation's clothes; skips the test where it is not available."""
    try:
        if name not in DROP_INS:
            return impls.load(name)
        function, family = DROP_INS[name]
        return dataclasses.replace(impls.load("cpu.auto"), name=name, function=function, family=family)
    except impls.Unavailable as reason:
        pytest.skip(str(reason))
