"""Calls on two threads in a process and in its forked children: `python forked_calls.py WAY KIND...` prints what went wrong.

In a process of its own: what a child that hangs or dies leaves behind meets no other test.
"""

import ctypes
import functools
import io
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

SECONDS = 30  # after which a child hangs
THREADS = []  # at each fork, where that is asked for


def count_threads():
    """An ended thread is still listed for a moment."""
    deadline = time.monotonic() + 2
    while (count := len([*Path("/proc/self/task").iterdir()])) > 1 and time.monotonic() < deadline:
        time.sleep(0.001)
    THREADS.append(count)


# Functions run before a fork in reverse order: this one after those of impls.
if "threads at a fork" in sys.argv:
    os.register_at_fork(before=count_threads)
import impls  # noqa: E402

# Implementations by operation; a kind is what their threads are.
KERNELS = {
    "conv2d": ("cpu.cython_direct", "cpu.cython_packed", "cpu.cython_winograd", "im2col.cython"),
    "conv_transpose2d": ("cpu.cython_direct",),
    "conv2d_backward": ("cpu.cython_direct",),
    "adam_step": ("cpu.cython_fused",),
    "preprocess": ("cpu.cython_fused",),
}
KINDS = {
    "kernels": KERNELS,
    "numba": {"adam_step": ("cpu.numba",), "im2col": ("cpu.numba",)},
    "torch": {"conv2d": ("cpu.torch",), "adam_step": ("cpu.torch_fused",), "im2col": ("cpu.torch_unfold",)},
    "opencv": {"conv2d": ("cpu.opencv",), "preprocess": ("cpu.opencv",)},
}
IMAGE, LAYER = np.ones((1, 1, 512, 512), "float32"), np.ones((4, 32, 40, 40), "float32")
WEIGHT = np.ones((32, 32, 3, 3), "float32")


def arguments(operation):
    if operation == "preprocess":
        from PIL import Image

        file = io.BytesIO()
        Image.new("RGB", (300, 200), (90, 9, 200)).save(file, "JPEG")
        return [file.getvalue()], [(0, 0, 200, 300)], np.ones((1, 3, 3, 3), "float32")
    if operation == "adam_step":
        return *(np.ones(1 << 16, "float32") for _ in range(4)), 1
    if operation == "im2col":
        return np.ones((300, 300), "float32"), (3, 3)
    return {"conv2d_backward": (LAYER[:, :, 2:, 2:], LAYER, WEIGHT)}.get(operation, (LAYER, WEIGHT))


def run(operation, name):
    """What a call returns, or the arrays that it changes."""
    given = arguments(operation)
    found = impls.load(name, operation)(*given)
    return [np.asarray(each) for each in (given[:4] if found is None else found if type(found) in (tuple, list) else [found])]


def drop_in():
    return [impls.conv2d(IMAGE, WEIGHT[:1, :1]), impls.conv2d(LAYER, WEIGHT, padding=1)]


def calls(kinds):
    chosen = [(operation, name) for kind in kinds for operation, names in KINDS[kind].items() for name in names]
    return {"impls.conv2d": drop_in, **{" ".join(one): functools.partial(run, *one) for one in chosen}}


def differing(expected):
    """The calls whose results are not those expected, by label."""
    return [
        label
        for label, (call, results) in expected.items()
        if not all(map(functools.partial(np.array_equal, equal_nan=True), call(), results))
    ]


def outcome(target, fork=os.fork):
    """The output of a child that prints target()'s result, or how it ended."""
    reader, writer = os.pipe()
    if not (child := fork()):
        os.write(writer, json.dumps(target()).encode())
        os._exit(0)
    os.close(writer)
    deadline = time.monotonic() + SECONDS
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        time.sleep(0.01)
    with os.fdopen(reader, encoding="utf-8") as answer:
        return json.loads(answer.read()) if ended[1] == 0 else f"ends with {os.waitstatus_to_exitcode(ended[1])}"


def in_a_thread(target):
    found = []
    thread = threading.Thread(target=lambda: found.append(target()))
    thread.start()
    thread.join()
    return found[0]


def pooled(label):
    return [np.asarray(each) for each in ALL[label]()]


def by_pool(expected):
    """The same in the processes of multiprocessing's pool, each of which does several."""
    with multiprocessing.get_context("fork").Pool(2) as pool:
        waiting = {label: pool.apply_async(pooled, (label,)) for label in expected}
        return [label for label, one in waiting.items() if not all(map(np.array_equal, one.get(SECONDS), expected[label][1]))]


def served(expected):
    """Like servers: workers are forked, answer while the parent computes, end, and new ones are forked."""
    found = []
    for _ in range(2):
        found += [outcome(lambda: differing(expected) + differing(expected)), differing(expected)]
    return [each for each in found if each]


def unannounced():
    """A fork that notifies Python only in the child, like uWSGI's."""
    if not (child := ctypes.PyDLL(None).fork()):
        ctypes.pythonapi.PyOS_AfterFork_Child()
    return child


def forked_again(expected):
    """In a child of the child that Python was not told of."""
    with warnings.catch_warnings(action="ignore"):
        return outcome(lambda: outcome(lambda: differing(expected)), unannounced)


def alone(expected, fork):
    """In a child that has to stay on one thread: what differs, the warnings, and how many threads there are after it."""
    import threadpoolctl

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")

        def child():
            threadpoolctl.threadpool_limits(2, user_api="openmp")
            wrong = differing(expected)
            return [wrong, [str(each.message) for each in said], len([*Path("/proc/self/task").iterdir()])]

        return outcome(child, fork)


def in_a_loop(expected):
    """Forked by the first of two threads that run a parallel loop."""
    openmp, found = ctypes.CDLL("libgomp.so.1"), []
    openmp.omp_set_max_active_levels(2)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def body(_):
        if openmp.omp_get_thread_num() == 0:
            found.append(alone(expected, os.fork))

    openmp.GOMP_parallel(body, None, 2, 0)
    return found[0]


def forking_threads(expected):
    """OpenCV's number of threads before and after, in the parent and in the children."""
    import cv2

    def fork():
        for _ in range(15):
            found.append(outcome(cv2.getNumThreads))

    before, found = cv2.getNumThreads(), []
    threads = [threading.Thread(target=fork) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [before, cv2.getNumThreads(), sorted({*found})]


def by_data_loader(expected):
    """In the workers of torch's loader, each of which does several."""
    from torch.utils.data import DataLoader, Dataset

    class Calls(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, number):
            return differing(expected)

    loader = DataLoader(Calls(), batch_size=None, num_workers=2, timeout=SECONDS, multiprocessing_context="fork")
    return [label for wrong in loader for label in wrong]


WAYS = {
    "child": lambda expected: outcome(lambda: differing(expected)),
    "grandchild": lambda expected: outcome(lambda: [differing(expected), outcome(lambda: differing(expected))]),
    "thread": lambda expected: in_a_thread(lambda: outcome(lambda: differing(expected))),
    "from a thread with loops": lambda expected: in_a_thread(
        lambda: [differing(expected), outcome(lambda: differing(expected))]
    ),
    "parent": lambda expected: [outcome(list), differing(expected)],
    "pool": by_pool,
    "server": served,
    "unannounced": lambda expected: alone(expected, unannounced),
    "in a loop": in_a_loop,
    "threads that fork at a time": forking_threads,
    "unannounced and then announced": forked_again,
    "threads at a fork": lambda expected: [outcome(list), THREADS[-1]],
    "data loader": by_data_loader,
}

if __name__ == "__main__":
    ways, kinds = sys.argv[1].split(","), sys.argv[2:]
    ALL = calls(kinds)
    known = {label: (call, call()) for label, call in ALL.items()}
    print(json.dumps({way: WAYS[way](known) for way in ways}))
