"""Which implementation computes a problem fastest: by measured problems, the more the more they are like it, or by rule.

The measurements (tables.py) hold for the compiled kernels alone; where these are missing, rules say what is best of what is
there.
"""

from __future__ import annotations

import functools
import math
import reprlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import index
from typing import Any

from impls import checks, contract
from impls.checks import Pair
from impls.conv2d import arguments, tables
from impls.conv2d.tables import Measured, Problem, Table

# Families that round more than a sum of products, and who else does: OpenCV transforms for large kernels.
TRANSFORMS = {"winograd", "fft", "cpu.opencv"}

# What any machine can do, for problems of each kind: first who was ahead of torch on most of its problems on every machine
# that was measured, or torch; then who is fastest without it; NumPy alone is needed for the last of each.
PACKED = ["cpu.cython_packed", "cpu.torch", "cpu.numba_direct", "im2col.strided"]
ALONG_ROWS = ["cpu.cython_direct", "cpu.torch", "cpu.cython_packed", "cpu.numba_direct", "im2col.strided"]
RULES = {
    "few channels": ["cpu.cython_direct", "cpu.numba_direct", "cpu.opencv", "cpu.torch", "cpu.shift_matmul"],
    "3x3 layer": ["cpu.cython_winograd", "cpu.numba_winograd", "cpu.torch", "im2col.strided"],
    "1x1 layer": ALONG_ROWS,
    "1x1 layer along channels": PACKED,
    "few pixels": ALONG_ROWS,
    "small layer": PACKED,
    "layer for wide vectors": PACKED,
    "narrow layer": ALONG_ROWS,
    "narrow layer along channels": PACKED,
    "larger kernel": ["cpu.cython_winograd", "cpu.torch", "cpu.cython_packed", "im2col.strided"],
    "larger kernel on few pixels": PACKED,
    "grouped layer": PACKED,
    "large layer": ["cpu.torch", "cpu.cython_packed", "cpu.numba_direct", "im2col.strided"],
}
FRUGAL = "cpu.shift_matmul"  # the last of all: NumPy alone, and less memory than patches take
FEW = 6  # channels in and out of a group up to which vectors along them are not worth their packing,
APART = 2  # with strides up to this, whose pixels are soon sorted into vectors along rows,
FEW_APART = 3  # and with wider ones where the compiled kernels, which sort any, are not there;
HALF_FILLED = 8  # but SEVERAL are for so few columns of several images, with WIDE vectors, half of each empty along rows
# Up to tables.SMALL FLOPs,
NARROW = 8  # with more outputs of a group, since fewer half fill the widest vectors along them, or as many of more inputs,
SMALL_NARROW = 10_000_000  # and with no more, or strides over APART,
SMALL_PLAIN = 4_000_000  # and at 1x1 without a stride, a product of matrices to torch, where it is no "1x1 layer":
TILE = 16  # pixels of an image's output and more, which fill a vector, none of them padding,
SEVERAL = 3  # and outputs of a group and more, which share them, but for
FULL = 8, 16  # outputs, one vector and two without WIDE ones, for which packed weights are faster,
MIDDLE = range(128, 1200)  # from so many channels up to so many;
NOT_APART = 32  # outputs up to which fewer channels than NARROW are summed along rows with WIDE vectors, whatever the stride;
BESIDE = 16, 1000  # but along channels on images of up to so many pixels more outputs, wider strides or NARROW channels,
LONG = 100  # and more outputs for kernels of more taps;
FEW_PIXELS = 16, 32  # of an image, one and two of the widest vectors: packing weights for so few takes as long as their sums
# In whose 32 registers of 64 bytes larger layers are mostly faster as well: along channels where there are more than NARROW
# outputs. Along rows of more than NARROW columns sums are faster anywhere, with no more channels and strides up to APART.
# Without these registers strided rows are so from BROAD columns on, of FEW channels with any strides, and kernels of
# fewer than MASSED taps alone.
WIDE = "avx512"
BROAD = 32
MASSED = 49
LAID = 20, 40  # outputs, and taps of all channels, from which on strided ones are laid out: packed weights outrun it
# Channels from which on Winograd's fewer products outweigh its transforms; for larger kernels outputs too. At 3x3 NARROW
# outputs do, and with wide vectors, which fewer do not fill, any number,
MANY = 16
SHARED = 16, 8  # but with WIDE ones not so many times as many channels as outputs, of so many images, over tables.DEEP taps;
EMPTY = 1  # but not with more of tables.untiled(): of Winograd's tiles less than half would be asked for;
SPREAD = 112  # but in small layers with no more pixels in an output channel, for which weights are transformed in vain,
PIECED = 200  # and for a kernel in pieces, of up to tables.DEEP taps, with no more of them: there are several transforms;


@dataclass(frozen=True)
class Choice:
    """The implementation that a problem gets, and why.

    expected: all that can compute it, the best first, and how many times as long as the fastest each should take by all
    measured problems in `table`, of which those that are most `alike` count most, the nearest first; infinite for who was not
    among the fast of any. Where a rule decides, alike is empty, table None and all expected are infinite. rule: the kind of
    problem for the rules. why: why no measurement decides. passed_over: what is better and cannot run here, and why.
    """

    problem: Problem
    implementation: contract.Implementation
    expected: dict[str, float]
    alike: tuple[Measured, ...]
    table: Table | None
    rule: str
    why: str
    passed_over: tuple[tuple[str, str], ...]

    @property
    def others(self) -> Iterator[contract.Implementation]:
        """Those that can compute it and run here as well, the best first."""
        order = list(self.expected)
        for name in order[order.index(self.implementation.name) + 1 :]:
            if not isinstance(found := _load(name), str):
                yield found

    @property
    def runner_up(self) -> str | None:
        """The next best that can run here."""
        return next((other.name for other in self.others), None)

    def __str__(self) -> str:
        """What was picked, from which measurements or by which rule, and what comes second."""
        picked, second = self.implementation.name, self.runner_up
        lines = [f"{picked} for {self.problem}"]
        lines += [] if self.table else [f"by rule: {self.rule}; {self.why}"]
        if second:
            slower = self.expected[second] / self.expected[picked]  # not a number by rule
            told = f", expected to take {slower:.3g} times as long" if math.isfinite(slower) else ""
            told += ", too little less to leave torch for it" if slower < 1 else ""
            lines.append(f"the runner-up is {second}{told}")
        lines += ["the measured problems most like it, the nearest first:"] * bool(self.alike)
        for one in self.alike:
            took = [f"{name} {_time(one.times[name])}" for name in (picked, second) if name in one.times]
            lines.append(f"  {one.problem}: {', '.join(took) or f'{next(iter(one.times))} and not these'}")
        if self.table:
            other = ", which has another processor" * (self.table.processor != tables.processor())
            lines.append(
                f"measured on {self.table.machine}{other} ({self.table.instruction_set}, {_threads(self.table.threads)}), "
                f"commit {self.table.commit}, {self.table.date}"
            )
        return "\n".join([*lines, *(f"{name} cannot run here: {reason}" for name, reason in self.passed_over)])


def _time(microseconds: float) -> str:
    return f"{microseconds / 1000:.3g} ms" if microseconds >= 999.5 else f"{microseconds:.3g} us"


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


@functools.lru_cache(maxsize=4096)
def function(
    exact: bool,
    by_rule: bool,
    input: tuple[int, ...],
    weight: tuple[int, ...],
    stride: Pair,
    padding: tuple[Pair, Pair],
    dilation: Pair,
    groups: int,
    dtype: Any,
    threads: int,
) -> Callable[..., Any]:
    """What computes the problem of these fields, without the checks of its arguments: whoever calls it has made them."""
    problem = Problem(input, weight, stride, padding, dilation, groups, checks.dtype_name(dtype))
    return _unchecked(choose(problem, threads, exact, by_rule).implementation)


def others(*fields: Any) -> Iterator[Callable[..., Any]]:
    """What else can compute the problem of the same fields, the best first."""
    exact, by_rule, *problem, dtype, threads = fields
    return map(_unchecked, choose(Problem._make((*problem, checks.dtype_name(dtype))), threads, exact, by_rule).others)


def _unchecked(implementation: contract.Implementation) -> Callable[..., Any]:
    return implementation.function.__wrapped__  # type: ignore[attr-defined]


def choose(problem: Problem, threads: int, exact: bool = False, by_rule: bool = False) -> Choice:
    """The best implementation of a problem that can run here; by_rule: whatever was measured.

    exact: none that rounds more than a sum of products does. Raises Unavailable where there is none, which cannot be as long
    as NumPy is there.
    """
    instructions = instruction_set()
    rule = _kind(problem, instructions)
    table = None if by_rule else tables.nearest(instructions, threads)
    alike, expected = table.known.expect(problem) if table else ((), {})
    expected = {name: expected.get(name, math.inf) for name in (*expected, *RULES[rule], *RULES["large layer"], FRUGAL)}
    expected = {name: late for name, late in expected.items() if computes(name, problem, exact)}
    passed_over = []
    for name, late in expected.items():
        found = _load(name)
        if isinstance(found, str):
            passed_over.append((name, found))
            continue
        if math.isinf(late):  # nothing that was measured there can compute this here
            alike, table = (), None
        why = _unmeasured(instructions, by_rule)
        return Choice(problem, found, expected, alike, table, rule, why, tuple(passed_over))
    raise contract.Unavailable("; ".join(reason for _, reason in passed_over))


def _unmeasured(instructions: str | None, by_rule: bool) -> str:
    if by_rule:
        return "measurements were not asked"
    if instructions is None:
        return "the compiled kernels, for which measurements hold, are not there"
    return f"nothing was measured with {instructions} that can compute it here"


def _kind(problem: Problem, instructions: str | None) -> str:
    """Which of the rules holds."""
    channels, outputs, kernel = problem.weight[1], problem.weight[0] // problem.groups, problem.weight[2:]
    wide, stride = instructions == WIDE, max(problem.stride)
    images, _, rows, columns = problem.output
    flops = problem.flops
    if max(channels, outputs) <= (FEW_APART if stride > APART and instructions is None else FEW):
        several = wide and min(channels, outputs) >= SEVERAL and kernel != (1, 1)
        return "small layer" if several and images > 1 and columns <= HALF_FILLED else "few channels"
    if channels == 1 and not wide:
        return "few channels"
    area = rows * columns
    pixels = images * area
    spread = flops > tables.SMALL or pixels > SPREAD
    taps = math.prod(kernel)
    many = wide and images >= SHARED[1] and channels >= SHARED[0] * outputs and channels * taps > tables.DEEP
    full = tables.untiled(problem) <= EMPTY
    transformed = problem.transformed and kernel == (3, 3) and spread and full and not many
    if transformed and channels >= MANY and (wide or outputs >= NARROW):
        return "3x3 layer"
    padded = any(map(any, problem.padding))
    if kernel == (1, 1) and outputs >= SEVERAL and area >= TILE and not padded:
        if not wide and outputs in FULL and channels in MIDDLE:
            return "1x1 layer along channels"
        return "1x1 layer"
    if pixels in FEW_PIXELS and images == 1:
        return "few pixels"
    more = outputs > BESIDE[0]
    beside = area <= BESIDE[1] and (more or stride > APART or channels == NARROW)
    narrow = "narrow layer along channels" if beside or (more and taps > LONG) else "narrow layer"
    if wide and channels < NARROW and kernel != (1, 1) and (stride <= APART or outputs <= NOT_APART):
        return narrow
    filled = outputs > NARROW or (outputs == NARROW < channels and not wide)
    small = tables.SMALL if filled and stride <= APART else SMALL_NARROW
    if kernel == (1, 1) and stride == 1:
        small = SMALL_PLAIN
    if flops <= small:
        return "small layer"
    if wide and (outputs > NARROW or kernel == (1, 1)):
        return "layer for wide vectors"
    if channels <= NARROW < columns and stride <= APART:
        if wide:
            return narrow
        laid = outputs >= LAID[0] and channels * taps >= LAID[1]
        along_rows = taps < MASSED and (stride == 1 or (columns >= BROAD and not laid))
        return "narrow layer" if along_rows else "narrow layer along channels"
    if channels <= FEW and columns >= BROAD and taps < MASSED and not wide:
        return "narrow layer"
    if min(channels, outputs) >= MANY and channels * taps <= tables.DEEP and problem.transformed:
        return "larger kernel" if pixels > PIECED and full else "larger kernel on few pixels"
    return "large layer" if wide or problem.groups == 1 else "grouped layer"


@functools.cache
def _load(name: str) -> contract.Implementation | str:
    """An implementation, or why it cannot run here."""
    try:
        return contract.load(name)
    except contract.Unavailable as error:
        return str(error)


_declaration = functools.cache(contract.declaration)


def computes(name: str, problem: Problem, exact: bool) -> bool:
    """Whether an implementation supports a problem, and is exact where that is asked; its library is not imported."""
    declared = _declaration(name)
    if exact and TRANSFORMS & {name, declared["family"]}:
        return False
    settings = problem.weight, problem.stride, problem.dilation, problem.groups, problem.dtype
    return arguments.outside(declared["limits"], *settings) is None


@functools.lru_cache(maxsize=1)
def _kernels() -> Any:
    """The compiled kernels, None where they are not built."""
    try:
        import impls.conv2d.cpu._cython_direct as kernels  # type: ignore[import-not-found]
    except ImportError:
        return None
    return kernels


def instruction_set() -> str | None:
    """What the kernels were compiled for; None where they are not built."""
    return kernels.instruction_set() if (kernels := _kernels()) else None


def threads() -> int:
    """How many threads a kernel would use now: OpenMP's number; 1 where the kernels are not built."""
    return kernels.threads() if (kernels := _kernels()) else 1


def explain(
    input: Any,
    weight: Any,
    bias: Any = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: Any = 1,
    *,
    dtype: str = "float32",
    exact: bool = False,
) -> Choice:
    """Say which implementation impls.conv2d would pick, from which measurement, and what the runner-up was.

    input, weight, bias: arrays, or their shapes (N, C, H, W), (K, C/groups, R, S) and (K,). dtype: where shapes are given.
    Printed, the answer is a few lines of text. Raises ValueError or TypeError as a call would.
    """
    given = {"input": input, "weight": weight, "bias": bias}
    arrays = {name: array if hasattr(array, "dtype") else None for name, array in given.items()}
    checks.require_one_dtype(**arrays)
    dtype = next((array.dtype for array in arrays.values() if array is not None), dtype)
    input_shape, weight_shape = _shape("input", input), _shape("weight", weight)
    asked = tables.problem(input_shape, weight_shape, stride, padding, dilation, groups, dtype)
    if bias is not None:
        checks.require_bias(_shape("bias", bias), asked.weight[0])
    return choose(asked, threads(), exact)


def _shape(name: str, array: Any) -> tuple[int, ...]:
    try:
        return tuple(int(index(length)) for length in getattr(array, "shape", array))
    except TypeError:
        raise TypeError(f"{name} must be an array, or its shape in integers, not {reprlib.repr(array)}") from None
