"""The verdict on a machine, and its concerns with their remedies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convbench.common import load, numbers
from convbench.doctor.facts import MachineFacts, SuiteFacts
from convbench.doctor.noise import KINDS, MAX_ROUNDS, SLOWDOWN, Noise

FIT, UNFIT = "suitable for benchmarking", "not suitable for benchmarking"
RESERVATIONS = f"{FIT}, with reservations"
MAX_STOLEN_SHARE = 0.02  # of the machine's time, taken by the host; above it single cells are disturbed
MIN_FREE_BYTES = 2 * 2**30  # of memory; below it large problems may be refused
MAX_ROUNDS_AT_FIRST = 15  # rounds that the gate spends on all cells
MAX_ROUNDS_IN_ALL = 30  # rounds that it spends on cells that are still undecided


@dataclass(frozen=True)
class Concern:
    """Why a machine is not suitable (grave), or suitable only with reservations, and what to do about it."""

    grave: bool
    reason: str
    cure: str


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was found. others: cores that other processes used while the noise was measured."""

    machine: MachineFacts
    noises: Sequence[Noise]
    suite: SuiteFacts
    others: float = 0.0

    @property
    def concerns(self) -> list[Concern]:
        """The concerns, the grave ones first."""
        found = [*_machine_concerns(self.machine), *(concern for one in self.noises for concern in _noise_concerns(one))]
        if self.others > load.MAX_BUSY_CORES:
            reason = f"other processes used {self.others:.1f} cores while the noise was measured"
            found.insert(0, Concern(True, reason, "stop them and run this again"))
        return sorted(found, key=lambda concern: not concern.grave)

    @property
    def verdict(self) -> str:
        """FIT, RESERVATIONS or UNFIT."""
        grave = [concern.grave for concern in self.concerns]
        return UNFIT if any(grave) else RESERVATIONS if grave else FIT


def rounds_needed(one: Noise) -> str:
    """After how many rounds a slow-down is detected, in words."""
    what = f"a slow-down of {numbers.percent(SLOWDOWN)}".replace(".0", "")
    if one.rounds is None:
        return f"{what} cannot be detected in {MAX_ROUNDS} rounds"
    return f"{what} is detected in about {one.rounds} rounds"


def _machine_concerns(machine: MachineFacts) -> list[Concern]:
    found = []
    if reason := load.disturbance(machine.used, machine.stolen):
        cure = "stop them" if machine.used > load.MAX_BUSY_CORES else "measure at another time, or elsewhere"
        found.append(Concern(True, reason, cure))
    elif machine.stolen > MAX_STOLEN_SHARE:
        cure = "cells that it disturbed are marked with ! in tables; decide by `convbench gate`, which measures in turn"
        found.append(Concern(False, f"the host takes {numbers.percent(machine.stolen)} of its time", cure))
    if len(machine.usable) == 1:
        found.append(Concern(False, "the only core has to run everything else, too", "provide a second core"))
    if machine.available < MIN_FREE_BYTES:
        free = numbers.quantity(machine.available, "bytes")
        found.append(
            Concern(False, f"{free} of memory are free, and large problems need more", "end the processes that use the rest")
        )
    if slow := [governor for governor in machine.governors or () if governor != "performance"]:
        reason = f"the frequency governor is {' and '.join(slow)}: clocks depend on the load"
        found.append(Concern(False, reason, "as root: cpupower frequency-set --governor performance"))
    if machine.boost:
        reason = "boost is on: clocks depend on temperature and load"
        found.append(Concern(False, reason, "switch it off in the firmware or, as root, in the system"))
    return found


def _noise_concerns(one: Noise) -> list[Concern]:
    rounds = one.rounds or MAX_ROUNDS + 1
    if rounds <= MAX_ROUNDS_AT_FIRST:
        return []
    spread = f"fresh processes of {KINDS[one.kind]} differ by {numbers.percent(one.ratio_deviation)}"
    reason = f"{spread}: {rounds_needed(one)}"
    cure = "measure when nothing else runs, or on a dedicated machine"
    return [Concern(rounds > MAX_ROUNDS_IN_ALL, reason, cure)]
