"""Every CPU implementation on every named case: one test each, but where every case compiles for seconds.

There a few cases are tried in every run and the others among the proofs.
"""

import pytest
from drop_in import NAMES

FEW = ("plain", "depthwise", "same, even kernel", "strides that differ", "no image")
COMPILING = {"cpu.torch_compile": ("plain",), "cpu.numba_stencil": FEW, "cpu.numba_direct": FEW}
READ_ONLY = ("read-only", "read-only, backwards")  # for which Numba compiles anew


def tried(name, word):
    """Whether an implementation is tried on a case in every run, and not among the proofs alone."""
    return word in COMPILING.get(name, (word,)) and not ("numba" in name and word in READ_ONLY)


def swept(cases):
    """Parametrise a test by the `name` of an implementation and by `which` of the cases it loops over."""
    sweeps = []
    for name in NAMES:
        few, others = ([word for word in cases if tried(name, word) is wanted] for wanted in (True, False))
        if few:
            sweeps.append(pytest.param(name, few, id=name))
        if others:
            sweeps.append(pytest.param(name, others, id=f"{name}, the other cases", marks=pytest.mark.slow))
    return pytest.mark.parametrize(("name", "which"), sweeps)


def each(proofs=()):
    """Parametrise a test by the `name` of an implementation, some of them among the proofs."""
    names = [pytest.param(name, marks=pytest.mark.slow) if name in proofs else name for name in NAMES]
    return pytest.mark.parametrize("name", names)
