"""The report of goals and times: it looks as before, and drops nothing."""

import os
import re
from pathlib import Path

from goal_lines import line, row, times
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.speed import goals, markdown
from convbench.speed.goals import Goal, Goals, Overall

GOLDEN = Path(__file__).parents[2] / "golden" / "speed.md"

SHOWN = (
    row(
        Goal(than="torch", geomean=5.0),
        Goal(than="copy", each=0.8, problems=("n1",)),
        name="images",
        what="one channel",
        problems=("n1", "n2"),
        also=("numba",),
    ),
    row(Goal(than="torch", geomean=1.5, each=1.2), Goal(exact=True), name="layers", what="many", problems=("n3", "n4")),
)
SHOWN = Goals(
    SHOWN,
    (Overall("all rows", SHOWN, (Goal(than="torch", geomean=3.0), Goal(near=0.1, share=0.9))),),
)
LATER = {"date": "2026-11-21T00:10:00+00:00", "versions": {"python": "3.11.7", "numpy": "2.5.0", "Cython": "3.3.1"}}
LINES = [
    line("n1", 1, {"torch": 0.0285, "torch.last": 0.03, "copy": 0.0004, "ours": 0.00045, "numba": 0.0005}),
    line(
        "n2",
        1,
        {"torch": 0.5, "torch.last": {"status": "skipped", "reason": "unavailable: torch"}, "ours": 0.1, "numba": 0.2},
    ),
    line("n1", 2, {"torch": 0.01, "torch.last": 0.02, "copy": 0.0004, "ours": 0.0006, "numba": 0.0005}),
    line("n2", 2, {"torch": 0.4, "torch.last": 0.4, "ours": 0.05, "numba": {"status": "failed", "reason": "WrongAnswer: 7"}}),
    line(
        "n3",
        1,
        {"torch": 2e-6, "torch.last": 3e-6, "ours": 1e-6, "ours packed once": 5e-7},
        disturbed="the host is slow",
        intervals=[["ours", "torch", 1.1, 2.5]],
    ),
    line(
        "n4",
        1,
        {"torch": 1.0, "torch.last": 1.0, "ours": 0.8, "ours packed once": {"status": "failed", "reason": "no"}},
        **LATER,
    ),
    *(line("n3", 2, {"torch": torch, "torch.last": 1e-6, "ours": 1e-6}) for torch in (1e-6, 1.3e-6, 1.4e-6)),
]


def test_the_report_looks_as_before():
    """All of it: met, missed and not judged, everything that has no time; UPDATE_GOLDEN=1 writes what it looks like now."""
    now = markdown.text(SHOWN, SHOWN.rows, times(*LINES), "box-2cores", "commit 01234567, by `convbench speed`")
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(now, encoding="utf-8")
    assert now == GOLDEN.read_text(encoding="utf-8")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_nothing_is_dropped(data):
    """Every problem stands in both tables of its row whatever was measured, and what has no time says so."""
    lines = data.draw(st.lists(st.sampled_from(LINES), unique_by=id, min_size=1))
    shown = markdown.text(SHOWN, SHOWN.rows, times(*lines), "box", "code")
    for each in SHOWN.rows:
        for label in each.problems:
            rows = re.findall(rf"^\| {label} .*", shown, re.MULTILINE)
            measured = [
                n for n in goals.THREADS if any((entry["problem"], entry["threads"]) == (label, n) for entry in lines)
            ]
            assert len(rows) == len(goals.THREADS)
            assert sum("not measured" in text for text in rows) == len(goals.THREADS) - len(measured)
    for entry in lines:
        for cell in entry["cells"]:
            assert cell["status"] == "ok" or cell["reason"] in shown
    assert shown.count("\n## ") == 1 + len(SHOWN.rows)
