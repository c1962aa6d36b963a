"""Rows of goals, and stored lines of times for them."""

from convbench.speed.goals import Row, Times


def line(label, threads, cells, **more):
    """A stored line; a cell is a median, with samples a tenth around it, or what is stored of it."""
    facts = {"date": "2026-11-20T21:00:00+00:00", "versions": {"python": "3.11.7", "numpy": "2.4.6"}, "wall": 1.0}
    found = [
        {"name": name, "status": "ok", "samples": [0.9 * cell, cell, 1.1 * cell], "relative_l2": 1e-7, "family": "direct"}
        if isinstance(cell, float)
        else {"name": name, **cell}
        for name, cell in cells.items()
    ]
    return {"problem": label, "threads": threads, "disturbed": None, **facts, **more, "cells": found}


FAILED, SKIPPED = ({"status": status, "reason": "why"} for status in ("failed", "skipped"))


def times(*lines):
    found: dict = {}
    for each in lines:
        found.setdefault((each["problem"], each["threads"]), []).append(each)
    return Times(found)


def row(*promised, problems=("a", "b"), **more):
    common = {"name": "row", "what": "some", "ours": "ours", "baseline": "torch", "beside": ("torch.last",), "seconds": 0.4}
    return Row(**{**common, "problems": problems, "goals": promised, **more})
