"""One number of threads for every pool in the process, set and read back; and the cores the process may use."""

from __future__ import annotations

import os
import sys

from benchmarks.errors import Skip

# The values of a parameter `threads`: the same on every machine, since asv addresses them by index.
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, "all")


class PoolError(RuntimeError):
    """A thread pool did not take the number it was given."""


def cores() -> list[int]:
    """The cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def resolve(count: int | str) -> int:
    """Turn one of COUNTS into a number of threads. Raises Skip if this machine has too few cores, or says it twice."""
    have = len(cores())
    if count == "all":
        if have in COUNTS:
            raise Skip(f"not on this machine: all its cores are {have}, which has its own row")
        return have
    if int(count) > have:
        raise Skip(f"not on this machine: it has {_cores(have)}")
    return int(count)


def require(count: int) -> None:
    """Raise ValueError if this machine has too few cores for so many threads, or they are none."""
    if count < 1:
        raise ValueError(f"threads must be at least 1, not {count}")
    if count > (have := len(cores())):
        raise ValueError(f"threads={count}, but this machine has {_cores(have)}")


def _cores(number: int) -> str:
    return f"{number} core{'s' * (number > 1)}"


def confine(threads: int) -> None:
    """Keep the process, and every thread it starts from now on, to as many cores as it has threads.

    The last cores: what else runs on a machine tends to sit on the first.
    """
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores()[-threads:])


def set_pools(threads: int) -> dict[str, int]:
    """Set the number of threads of every pool in the process; return the numbers read back.

    Pools: BLAS and OpenMP as threadpoolctl finds them, Numba, torch and OpenCV if they are imported. Raises PoolError
    where one does not follow.
    """
    from threadpoolctl import ThreadpoolController

    if numba := sys.modules.get("numba"):
        # Before the others: its first call starts its threads, and sets OpenMP's number to that of all cores.
        numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    ThreadpoolController().limit(limits=threads)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)
    if cv2 := sys.modules.get("cv2"):
        cv2.setNumThreads(threads)
    return require_pools(threads)


def require_pools(threads: int) -> dict[str, int]:
    """The number of threads of each pool in the process. Raises PoolError if that is not this number."""
    found = pools()
    wrong = {pool: have for pool, have in found.items() if have != threads}
    if wrong:
        raise PoolError(f"{threads} threads were set, but " + ", ".join(f"{p} has {n}" for p, n in wrong.items()))
    return found


def pools() -> dict[str, int]:
    """The number of threads of each pool in the process, for the libraries that are imported."""
    from threadpoolctl import ThreadpoolController

    found = {f"{pool['internal_api']} {pool['prefix']}": pool["num_threads"] for pool in ThreadpoolController().info()}
    if numba := sys.modules.get("numba"):
        found["numba"] = numba.get_num_threads()
    if torch := sys.modules.get("torch"):
        found["torch"] = torch.get_num_threads()
    if cv2 := sys.modules.get("cv2"):
        found["opencv"] = cv2.getNumThreads()
    return found
