"""torch's profile of training on tiles by several readers: one trace each, which TensorBoard and Perfetto open."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.errors import Skip, WrongAnswer
from benchmarks.harness import cell
from benchmarks.timing import threads
from benchmarks.workloads.tile_training import Pass

READERS = ("cpu.rasterio", "cpu.skimage", "cpu.skimage_torch", "cpu.raw_numba")
# Batches that pass unseen, that the profiler warms up in, and that it records, as in torch's own tutorial:
# https://docs.pytorch.org/tutorials/intermediate/tensorboard_profiler_tutorial.html
WAIT, WARMUP, ACTIVE = 1, 1, 3
WAITING = "enumerate(DataLoader)"  # torch's name for the time until the next batch
USUAL: dict[str, Any] = {
    "names": list(READERS),
    "batch": 32,
    "workers": 0,
    "threads": len(threads.cores()),
    "folder": str(cell.CHECKOUT / ".convbench/traces"),
}


def run(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield {"preparing": name} and, for each reader, {"name", "trace": path, "batches", "seconds", "waiting"}, or {"name",
    "skipped": reason}; waiting: seconds of the recorded ones in which the next batch was not there yet.

    request: names of train_tiles, batch, workers, threads, folder; what is missing is as in USUAL. A trace is
    folder/<name>/resnet18.pt.trace.json.gz, with the shapes of all tensors and the stacks of Python; TensorBoard shows a
    folder of them as runs. Raises ValueError for unknown settings, too many threads and wrong answers, and OSError.
    """
    if unknown := set(request) - set(USUAL):
        raise ValueError(f"a request has {', '.join(USUAL)}, not {', '.join(sorted(unknown))}")
    settings = {**USUAL, **request}
    threads.require(settings["threads"])
    problem = Pass(settings["batch"] * (WAIT + WARMUP + ACTIVE), settings["batch"], settings["workers"])
    for name in settings["names"]:
        yield {"preparing": name}
        try:
            made = cell.prepare(name, problem, settings["threads"], "train_tiles")
        except Skip as skip:
            yield {"name": name, "skipped": str(skip)}
            continue
        except WrongAnswer as error:
            raise ValueError(f"{name} is wrong, and a wrong answer has no profile: {error}") from error
        yield {"name": name, **_traced(made.call, Path(settings["folder"], name, "resnet18.pt.trace.json.gz"))}


def _traced(call: Any, path: Path) -> dict[str, Any]:
    from torch.optim.optimizer import register_optimizer_step_post_hook
    from torch.profiler import profile, schedule

    path.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}

    def write(recorded: Any) -> None:
        recorded.export_chrome_trace(str(path))
        events = recorded.events()
        waiting = sum(event.cpu_time_total for event in events if event.name.startswith(WAITING))
        steps = [event for event in events if event.name.startswith("ProfilerStep")]
        whole = sum(event.cpu_time_total for event in steps)
        found.update(trace=str(path), batches=len(steps), seconds=whole / 1e6, waiting=waiting / 1e6)

    plan = schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE, repeat=1)
    with profile(schedule=plan, on_trace_ready=write, record_shapes=True, with_stack=True) as recorded:
        # The profiler counts batches, and a pass is one call: the optimiser's step is the end of each.
        hook = register_optimizer_step_post_hook(lambda *_: recorded.step())
        try:
            call()
        finally:
            hook.remove()
    return found
