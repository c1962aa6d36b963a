"""Every CPU implementation on every named case: one test each, but where every case compiles for seconds.

There a few cases are slow tests and the others proofs.
"""

import pytest
from drop_in import NAMES

FEW = ("plain", "same, even kernel", "strides that differ", "no image")
COMPILING = {"cpu.torch_compile": (), "cpu.numba_stencil": FEW, "cpu.numba_direct": FEW}
READ_ONLY = ("read-only", "read-only, backwards")  # for which Numba compiles anew


def tried(name, word):
    """Whether an implementation is tried on a case, and not among the proofs alone."""
    return word in COMPILING.get(name, (word,)) and not ("numba" in name and word in READ_ONLY)


def swept(cases, proofs=()):
    """Parametrise a test by the `name` of an implementation and by `which` of the cases it loops over.

    The implementations in `proofs` are tried on all of them among the proofs alone.
    """
    sweeps = []
    for name in NAMES:
        few = [word for word in cases if name not in proofs and tried(name, word)]
        others = [word for word in cases if word not in few]
        if few:
            sweeps.append(pytest.param(name, few, id=name, marks=[pytest.mark.slow] * (name in COMPILING or "numba" in name)))
        if others:
            sweeps.append(pytest.param(name, others, id=f"{name}, the other cases", marks=pytest.mark.proof))
    return pytest.mark.parametrize(("name", "which"), sweeps)


def each(proofs=(), slow=()):
    """Parametrise a test by the `name` of an implementation, some of them among the proofs, some, as Numba's, slow tests."""
    slow = [*slow, *(name for name in NAMES if "numba" in name)]
    marks = {**dict.fromkeys(slow, pytest.mark.slow), **dict.fromkeys(proofs, pytest.mark.proof)}
    names = [pytest.param(name, marks=marks[name]) if name in marks else name for name in NAMES]
    return pytest.mark.parametrize("name", names)
