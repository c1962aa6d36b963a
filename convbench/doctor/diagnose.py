"""Examines this machine: its properties, its noise, and what the suite lacks."""

from __future__ import annotations

import time

from rich.console import Console

from convbench.asv.project import Project
from convbench.common import interrupts, lock
from convbench.doctor import facts, noise
from convbench.doctor.verdict import Diagnosis


def diagnose(project: Project, console: Console) -> Diagnosis:
    """Look at the machine, measure its noise, ask the suite. Raises ClickException if that cannot be done."""
    with (
        lock.lock(project.work, project.results),
        interrupts.interruptible(lambda: "there is no verdict, and nothing was left running"),
    ):
        machine = facts.read_machine(console)
        start, before = time.monotonic(), facts.cpu_seconds_of_others()
        noises = noise.measure(console)
        others = (facts.cpu_seconds_of_others() - before) / (time.monotonic() - start)
        return Diagnosis(machine, noises, facts.ask_suite(project, console), others)
