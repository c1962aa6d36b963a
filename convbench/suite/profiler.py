"""Profiles one implementation: starts it, runs the usual profilers, and labels their output."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import pstats
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from convbench.asv.project import Project
from convbench.common import atomic_write, interrupts, numbers
from convbench.suite import ask, call_tree, counters, flame_graph, flat_profile

MAX_RATE = 100  # stacks per second that py-spy looks at
MAX_STACKS = 900  # samples in all: py-spy draws no frame below a thousandth, and splits compiled functions by address
REFUSED = (
    "py-spy may not look into another process here: run as root, or in a container started with --cap-add SYS_PTRACE, "
    "or let it look: sysctl kernel.yama.ptrace_scope=0"
)


@dataclass(frozen=True)
class Outputs:
    """The selected outputs: files, and texts to print; the call tree if none is selected.

    flat: a key of flat_profile.ORDERS. rate: stacks per second if that is not left to MAX_RATE and MAX_STACKS.
    """

    graph: Path | None = None
    native: Path | None = None
    trace: Path | None = None
    output: Path | None = None
    flat: str | None = None
    counters: bool = False
    rate: int | None = None

    @property
    def files(self) -> dict[str, Path]:
        """The output files, by their options."""
        named = {"graph": self.graph, "native": self.native, "trace": self.trace, "output": self.output}
        return {option: path for option, path in named.items() if path}

    @property
    def tree(self) -> bool:
        return not (self.files or self.flat or self.counters)

    @property
    def tools(self) -> list[str]:
        """The requested tools, in the suite's words; the stacks last, since their calls do not end."""
        calls = self.graph or self.output or self.flat or self.tree
        wanted = {"counters": self.counters, "calls": calls, "trace": self.trace, "stacks": self.native}
        return [tool for tool, asked in wanted.items() if asked]


def run(project: Project, question: dict[str, Any], outputs: Outputs, console: Console) -> str:
    """Profile; return what to print: the selected texts, and a line about each file.

    question: name, problem, operation, threads, calls, seconds. Files appear whole, all of them, or not at all. Raises
    ClickException in one sentence for whatever prevents it: a missing tool, an unknown name, a wrong answer, Ctrl-C.
    """
    require_tools(outputs)
    if outputs.native:
        stack_rate(question["seconds"], outputs.rate)
    paths = {path.resolve() for path in outputs.files.values()}
    if len(paths) < len(outputs.files):
        raise click.ClickException("--graph, --native, --trace and --output need a file each")
    texts: list[str] = []
    lines: list[str] = []
    facts: dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        stack.enter_context(interrupts.interruptible(lambda: "no profile was written"))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        files = {tool: folder / tool for tool in ("counters", "calls", "trace")}
        new = {option: stack.enter_context(whole(path)) for option, path in outputs.files.items()}
        request = {**question, "tools": outputs.tools, "files": {tool: str(path) for tool, path in files.items()}}
        process: dict[str, int] = {}
        stack.callback(_remove_list, process)
        events = stack.enter_context(contextlib.closing(ask.ask(project, "profile", request, console)))
        for event in events:
            if "ready" in event:
                facts |= event["ready"]
            elif "process" in event:
                process |= event
            elif "counters" in event:
                title = _title(facts, f"{numbers.many(event['counters'], 'call')} counted by perf, in user space alone")
                counted = counters.read(files["counters"].read_text(encoding="utf-8"))
                texts += [title, counters.render(counted, event["counters"])]
            elif "calls" in event:
                title = _title(facts, f"{numbers.many(event['calls'], 'call')} under cProfile")
                if outputs.tree or outputs.flat:
                    texts += [f"{title}\n{_profile(facts, event['calls'], files['calls'], outputs.flat)}"]
                if outputs.graph:
                    draw_graph(files["calls"], title, new["graph"])
                    lines.append(f"{outputs.graph}: {title}")
                if outputs.output:
                    shutil.copyfile(files["calls"], new["output"])
                    lines.append(f"{outputs.output}: {title}")
            elif "trace" in event:
                title = _title(facts, f"{numbers.many(event['trace'], 'call')} under torch's profiler")
                alone = label_trace(files["trace"], {"title": title, **facts}, str(outputs.trace), new["trace"])
                lines.append(
                    f"{outputs.trace}: {title}{'; no operator of torch is in it, only functions of impls' if alone else ''}"
                )
            elif "stacks" in event:
                count = sample(process["process"], question["seconds"], new["native"], outputs.rate)
                title = _title(facts, f"{numbers.many(count, 'stack')} by py-spy")
                svg = flame_graph.label(new["native"].read_text(encoding="utf-8"), title, event["stacks"])
                new["native"].write_text(svg, encoding="utf-8")
                lines.append(f"{outputs.native}: {title}")
                break  # its calls have no end: closing the events ends the process
    return "\n\n".join([*texts, *(["\n".join(lines)] if lines else [])])


def require_tools(outputs: Outputs) -> None:
    """Raise ClickException for the first tool that is missing, with how to install it."""
    found = importlib.util.find_spec
    tools = (
        ("graph", "gprof2dot", found("gprof2dot"), "pip install 'convbench[profile]'"),
        ("graph", "Graphviz's dot", shutil.which("dot"), "apt-get install graphviz, or the equivalent of your system"),
        ("native", "py-spy", _py_spy(), "pip install 'convbench[profile]'"),
        ("trace", "torch", found("torch"), "pip install torch"),
        (
            "counters",
            "perf",
            shutil.which("perf"),
            "apt-get install linux-perf, or the equivalent of your system (Linux alone)",
        ),
    )
    for option, tool, there, cure in tools:
        if getattr(outputs, option) and not there:
            raise click.ClickException(f"--{option} needs {tool}, which is not installed: {cure}")


def draw_graph(profile: Path, title: str, target: Path) -> None:
    """Draw a profile in pstats's format as a call graph, by gprof2dot and Graphviz."""
    dot = _tool([sys.executable, "-m", "gprof2dot", "--format", "pstats", str(profile)])
    # The first line opens the graph, and its name becomes the picture's title.
    source = dot.replace("digraph {", f"digraph {json.dumps(title)} {{\n\tlabel={json.dumps(title)}; labelloc=t;", 1)
    _tool(["dot", "-Tsvg", "-o", str(target)], source)


def stack_rate(seconds: float, asked: int | None) -> int:
    """How many stacks a second py-spy takes. Raises ClickException if more are asked for than can be drawn."""
    duration = math.ceil(seconds)  # it takes whole seconds
    largest = max(1, MAX_STACKS // duration)
    if asked and asked > largest:
        raise click.ClickException(
            f"--rate {asked} makes too many stacks in {duration} s for py-spy, which draws no function below a thousandth; "
            f"take fewer --seconds, or at most --rate {largest}"
        )
    return asked or min(MAX_RATE, largest)


def sample(pid: int, seconds: float, target: Path, asked: int | None = None) -> int:
    """Have py-spy draw a flame graph of a process's stacks, compiled frames too; return of how many."""
    duration = math.ceil(seconds)
    rate = stack_rate(seconds, asked)
    options = ["--native", "--format", "flamegraph", "--duration", str(duration), "--rate", str(rate)]
    try:
        _tool([_py_spy() or "py-spy", "record", *options, "--output", str(target), "--pid", str(pid)])
    except click.ClickException as error:
        if re.search("permission denied|not permitted", error.message, re.IGNORECASE):
            raise click.ClickException(REFUSED) from None
        raise
    count = flame_graph.stacks(target.read_text(encoding="utf-8"))
    if not count:
        raise click.ClickException(f"py-spy took no sample of the running process in {duration} s; increase --seconds")
    return count


def label_trace(trace: Path, facts: dict[str, Any], name: str, target: Path) -> bool:
    """Add the profiled names to torch's trace and remove this machine's; return whether it has no operator."""
    content = json.loads(trace.read_text(encoding="utf-8"))
    content |= {"traceName": Path(name).name, "host_name": "", "convbench": facts}
    target.write_text(json.dumps(content), encoding="utf-8")
    return not any(event.get("cat") == "cpu_op" for event in content["traceEvents"])


def _profile(facts: dict[str, Any], calls: int, profile: Path, order: str | None) -> str:
    """A profile in pstats's format as text: flat in an order, or the call tree; above it what the profiler cost."""
    stats = pstats.Stats(str(profile)).stats  # type: ignore[attr-defined]
    seconds = sum(own for _, _, own, *_ in stats.values()) / calls, facts["seconds"]
    slow, usual = (numbers.quantity(each, "seconds", spread=0.05) for each in seconds)
    cost = f"{slow} a call under the profiler, {usual} without it: it slows down Python calls, not compiled code"
    return f"{cost}\n\n{flat_profile.render(stats, order) if order else call_tree.render(stats)}"


def _tool(command: list[str], given: str | None = None) -> str:
    """Run a tool; return its output. Raises ClickException with the line of the error."""
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()] or ["it printed nothing"]
        cause = next((line for line in lines if re.search("error|denied", line, re.IGNORECASE)), lines[-1])
        raise click.ClickException(f"{Path(command[0]).name} ended with status {done.returncode}: {cause.strip()}")
    return done.stdout


def _py_spy() -> str | None:
    """The path of py-spy: beside this Python, even if its environment is not active, or on PATH."""
    beside = str(Path(sys.executable).parent)
    return shutil.which("py-spy", path=os.pathsep.join([beside, os.environ.get("PATH", os.defpath)]))


def _remove_list(process: dict[str, int]) -> None:
    """Remove the list of kernels that oneDNN leaves for perf, where it wrote one: the profile has their names."""
    with contextlib.suppress(OSError):  # another user's may have its name
        Path(f"/tmp/perf-{process.get('process')}.map").unlink()


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """atomic_write.whole(), but told before anything is profiled where the file cannot be written."""
    with contextlib.ExitStack() as stack:
        try:
            beside = stack.enter_context(atomic_write.whole(path))
        except OSError as error:
            raise click.ClickException(f"cannot write to {path}: {error.strerror}") from None
        yield beside


def _title(facts: dict[str, Any], how: str) -> str:
    what = "{operation} by {name} on {problem}, {dtype}".format(**facts)
    return f"{what}, {numbers.many(facts['threads'], 'thread')}: {how}"
