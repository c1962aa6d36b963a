"""A small suite with results of two commits, for commands that read them."""

import json

from gate_projects import Sample

SUITE = {
    "b.T.time_x": {
        "name": "b.T.time_x",
        "param_names": ["implementation"],
        "params": [["'cpu.a'", "'cpu.b'"]],
        "type": "time",
        "unit": "seconds",
        "version": "1",
        "code": "",
        "timeout": 60,
        "number": 0,
    },
    "version": 2,
}


COLUMNS = ["result", "params", "version", "started_at", "duration", "stats_q_25", "stats_q_75", "samples"]


def content(commit, params=None, values=(0.001, 0.002), **other):
    row = [list(values), params or SUITE["b.T.time_x"]["params"], "1", 1.7e12, 1.0, None, None, None]
    whole = {"commit_hash": commit, "env_name": "env", "date": 1700000000000, "params": {"machine": "m"}}
    return {**whole, "result_columns": COLUMNS, "results": {"b.T.time_x": row}, "version": 2, **other}


def measured(where):
    """A project with two commits, both with results. good: the file of the second."""
    made = Sample(where)
    made.hashes = [made.commit({"n": str(i)}, f"commit {i}") for i in range(2)]
    folder = made.folder / "results" / "m"
    folder.mkdir(parents=True)
    (folder.parent / "benchmarks.json").write_text(json.dumps(SUITE))
    (folder / "machine.json").write_text('{"machine": "m"}')
    for commit in made.hashes:
        (folder / f"{commit[:8]}-env.json").write_text(json.dumps(content(commit)))
    made.good = folder / f"{made.hashes[1][:8]}-env.json"
    return made
