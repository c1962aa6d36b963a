"""Candidates in one process: which are skipped, and the reservations about their times."""

from types import SimpleNamespace

from benchmarks.commands.interleaved import Candidates
from benchmarks.timing import clock


class Scripted:
    """A candidate with given times of its calls; the last one repeats."""

    def __init__(self, *seconds):
        self.seconds = list(seconds)
        self.block = lambda number: self.seconds.pop(0) if len(self.seconds) > 1 else self.seconds[0]


def test_no_candidate_is_skipped_for_a_few_calls():
    candidates = {
        "fast": Scripted(0.01),
        "slow at first": Scripted(0.3, 0.3, 0.3, 0.011),
        "slow too long": Scripted(0.3, 0.3, 0.3, 0.3, 0.011),
        "slow": Scripted(0.3),
        "slow, not a rival": Scripted(0.3),
    }
    ready = Candidates.__new__(Candidates)
    ready.ready, ready._results = dict(candidates), {name: {"name": name} for name in candidates}
    ready.leave_out(["slow at first", "slow too long", "slow", "not there"], 3.0)
    assert list(ready.ready) == ["fast", "slow at first", "slow, not a rival"]
    assert ready._results["slow"]["reason"] == "left out: a call takes 30 times as long as the fastest's"


def test_what_has_to_be_known_of_times_stands_beside_them():
    """On a device, launches that could not be left out of the time, or a clock that was held back."""
    checked = Candidates.__new__(Candidates)
    checked.ready, checked._results = {}, {}
    said = {"quiet": {}, "late": {"remark": "launches"}, "hot": {"remark": "launches", "held_back": "its temperature"}}
    for name, reservations in said.items():
        checked.ready[name] = SimpleNamespace(block=clock.Block(), verify=lambda output: {})
        vars(checked.ready[name].block).update(reservations)
        checked._results[name] = {"name": name}
    checked.measured = dict.fromkeys(said, clock.Measurement([1.0], 1, 1.0))
    assert [(each["status"], each.get("reason")) for each in checked.results()] == [
        ("ok", None),
        ("ok", "launches"),
        ("ok", "its temperature held the device's clock back while this was measured"),
    ]
