"""Limits of this machine on the CPU: copies and multiply-adds in native loops, on a given number of threads."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import Skip, WrongAnswer
from benchmarks.timing import threads
from benchmarks.timing.clock import Block, Wall
from benchmarks.timing.prepared_cell import PreparedCell

KIB, MIB = 1 << 10, 1 << 20
PAGE = 1024  # float32 elements in a page of memory: a copy is checked at one of each page
LANE_BYTES, VECTOR_BYTES = 4096, 64  # of the values of multiply-adds, which stay in the L1 cache, and of one vector of them
CHAIN, UNROLLED = 8, 8  # multiply-adds that depend on one another, and how many of these are computed side by side

Loops = tuple[
    list[Callable[[int], Any]], np.ndarray, np.ndarray
]  # a loop a thread; the last one's result, and what it must be

# The work of one call of one thread. Bytes moved are bytes read plus bytes written; on several threads each has its own part.
LIMITS: dict[str, dict[str, Any]] = {
    **{f"copy into warm memory, {size >> 10} KiB": {"bytes": size} for size in (32 * KIB, 256 * KIB)},
    **{f"copy into warm memory, {size >> 20} MiB": {"bytes": size} for size in (MIB, 8 * MIB, 64 * MIB, 128 * MIB)},
    **{f"copy into fresh memory, {size >> 20} MiB": {"bytes": size, "fresh": True} for size in (MIB, 8 * MIB, 64 * MIB)},
    **{f"multiply-add, {dtype}": {"flops": 1 << 24, "dtype": dtype} for dtype in ("float32", "float64")},
}


def prepare(limit: str, count: int) -> PreparedCell:
    """The cell of one limit. Raises Skip if it cannot be measured."""
    what = LIMITS[limit]
    threads.confine(count)
    return _fresh_copy(what["bytes"] // 2, count) if what.get("fresh") else _native(what, count)


def copying(moved: int, count: int) -> PreparedCell:
    """The cell of a copy into warm memory that moves so many bytes, read and written, all threads together."""
    return _native({"bytes": moved // count}, count)


def _native(what: dict[str, Any], count: int) -> PreparedCell:
    """The native loop of each thread in one call."""
    pools = threads.set_pools(count)
    try:
        import numba
    except ImportError as error:
        raise Skip("unavailable: ceilings are measured in native loops, which need Numba: pip install numba") from error
    start = perf_counter()
    loops, result, expected = (_copies if "bytes" in what else _multiply_adds)(numba, what, count)
    for loop in loops:
        loop(1)  # compiles
    block = _Together(loops, result)
    return PreparedCell(lambda: block(1), block, _equals(expected), pools, perf_counter() - start)


class _Together(Block):
    """Native loops that start at the same time, each on a thread of its own; a block is one loop of so many rounds."""

    def __init__(self, loops: list[Callable[[int], Any]], result: np.ndarray) -> None:
        self.loops, self.output = loops, result
        self.pool = ThreadPoolExecutor(len(loops))

    def __call__(self, number: int) -> float:
        gate = threading.Barrier(len(self.loops))

        def work(loop: Callable[[int], Any]) -> tuple[float, float]:
            gate.wait()
            start = perf_counter()
            loop(number)
            return start, perf_counter()

        times = list(self.pool.map(work, self.loops))
        return max(end for _, end in times) - min(start for start, _ in times)


def _copies(numba: Any, what: dict[str, Any], count: int) -> Loops:
    """Loops of the C library's memcpy, which chooses its instructions by size; the interpreter lock is not held."""
    memcpy = ctypes.CDLL(None).memcpy
    memcpy.argtypes, memcpy.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t], ctypes.c_void_p

    @numba.njit(nogil=True)
    def copies(target, source, size, rounds):
        for _ in range(rounds):
            memcpy(target, source, size)

    size = what["bytes"] // 2
    pairs = [(np.zeros(size // 4, np.float32), np.ones(size // 4, np.float32)) for _ in range(count)]
    for _, source in pairs:
        source[::PAGE] = np.arange(len(source[::PAGE]))

    def loop(target: np.ndarray, source: np.ndarray) -> Callable[[int], Any]:
        return lambda rounds: copies(target.ctypes.data, source.ctypes.data, size, rounds)

    return [loop(*pair) for pair in pairs], *pairs[-1]


def _multiply_adds(numba: Any, what: dict[str, Any], count: int) -> Loops:
    size = np.dtype(what["dtype"]).itemsize
    elements = LANE_BYTES // size
    steps = what["flops"] // (2 * CHAIN * elements)
    chain = _compile(_chain({4: "float", 8: "double"}[size], VECTOR_BYTES // size, LANE_BYTES // VECTOR_BYTES))
    # One half is the factor's fixed point, x/2 + 1/2 = x at 1: values stay exact and can be checked.
    lanes = [_aligned(elements, what["dtype"], 1) for _ in range(count)]
    half = _aligned(VECTOR_BYTES // size, what["dtype"], 0.5)

    def loop(lane: np.ndarray) -> Callable[[int], Any]:
        return lambda rounds: chain(lane.ctypes.data, half.ctypes.data, steps * rounds)

    return [loop(lane) for lane in lanes], lanes[-1], np.ones_like(lanes[-1])


def _aligned(elements: int, dtype: str, value: float) -> np.ndarray:
    """An array of one value that begins at a whole vector."""
    size = elements * np.dtype(dtype).itemsize
    memory = np.zeros(size + VECTOR_BYTES, np.uint8)
    start = -memory.ctypes.data % VECTOR_BYTES
    array = memory[start : start + size].view(dtype)
    array[:] = value
    return array


def _chain(kind: str, width: int, vectors: int) -> str:
    """A function of LLVM's language: (values, factor, rounds), CHAIN dependent multiply-adds to each value in each round.

    UNROLLED vectors side by side keep every unit busy; a load and a store are shared by CHAIN. Vectors are as wide as any
    processor has them, and are split where it has narrower ones. Compiled from a loop of Python, they would be half as wide
    as AVX-512's, since LLVM prefers those for code of which it does not know whether wide ones pay.
    """
    vector, side = f"<{width} x {kind}>", range(UNROLLED)
    body = [f"%i{u} = add i64 %i, {u}\n%at{u} = getelementptr {vector}, {vector}* %values, i64 %i{u}" for u in side]
    body += [f"%x{u}.0 = load {vector}, {vector}* %at{u}" for u in side]
    for step in range(CHAIN):
        body += [f"%p{u}.{step} = fmul contract {vector} %x{u}.{step}, %factor" for u in side]
        body += [f"%x{u}.{step + 1} = fadd contract {vector} %p{u}.{step}, %factor" for u in side]
    body += [f"store {vector} %x{u}.{CHAIN}, {vector}* %at{u}" for u in side]
    lines = "\n".join(body)
    return f"""
        define void @chain({vector}* %values, {vector}* %half, i64 %rounds) {{
        start:
            %factor = load {vector}, {vector}* %half
            br label %round
        round:
            %r = phi i64 [0, %start], [%r.next, %last]
            br label %inside
        inside:
            %i = phi i64 [0, %round], [%i.next, %inside]
            {lines}
            %i.next = add i64 %i, {UNROLLED}
            %more = icmp ult i64 %i.next, {vectors}
            br i1 %more, label %inside, label %last
        last:
            %r.next = add i64 %r, 1
            %again = icmp ult i64 %r.next, %rounds
            br i1 %again, label %round, label %end
        end:
            ret void
        }}"""


def _compile(code: str) -> Callable[[int, int, int], None]:
    """The function `chain` of LLVM's language, compiled for this processor; the interpreter lock is not held."""
    from llvmlite import binding as llvm  # Numba's own compiler

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = {"cpu": llvm.get_host_cpu_name(), "features": llvm.get_host_cpu_features().flatten()}
    machine = llvm.Target.from_default_triple().create_target_machine(**host, opt=3)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(code), machine)
    engine.finalize_object()
    address = engine.get_function_address("chain")
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(address)

    def chain(values: int, half: int, rounds: int, _engine: Any = engine) -> None:  # it owns the code
        function(values, half, rounds)

    return chain


def _fresh_copy(size: int, count: int) -> PreparedCell:
    """A copy into memory that the system has just given: every page of it is faulted in."""
    pools = threads.set_pools(count)
    if count > 1:
        raise Skip("not on several threads: one call allocates on one")
    source = np.ones(size // 4, np.float32)
    source[::PAGE] = np.arange(len(source[::PAGE]))

    def call() -> np.ndarray:
        target = np.frombuffer(mmap.mmap(-1, size), np.float32)
        np.copyto(target, source)
        return target

    return PreparedCell(call, Wall(call), _equals(source), pools)


def _equals(expected: np.ndarray) -> Callable[[np.ndarray], dict[str, Any]]:
    def verify(output: np.ndarray) -> dict[str, Any]:
        if not np.array_equal(output[::PAGE], expected[::PAGE]):
            raise WrongAnswer("the result differs from what was copied or computed")
        return {}

    return verify
