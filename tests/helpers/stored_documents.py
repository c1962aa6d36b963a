"""Results files as asv and the suite write them, cell by cell."""

import json
import math

import compressed

from convbench.stored import results, side_lines

# asv's own order; a row may end early.
COLUMNS = [
    *("result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b", "stats_q_25"),
    *("stats_q_75", "stats_number", "stats_repeat", "samples", "profile"),
]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAN = math.nan


def stored(result, params=(), version="1", q25=None, q75=None, samples=None):
    """A row of asv's file, cut where nothing follows."""
    values = {"result": result, "params": list(params), "version": version}
    values |= {"stats_q_25": q25, "stats_q_75": q75, "samples": samples}
    row = [values.get(column) for column in COLUMNS]
    while row and row[-1] is None:
        row.pop()
    return row


def document(rows, machine="box", commit=COMMIT):
    return {
        "commit_hash": commit,
        "env_name": "env",
        "date": 1700000000000,
        "params": {"machine": machine, "cpu": "A Processor", "num_cpu": "2"},
        "python": "3.11",
        "requirements": {},
        "env_vars": {},
        "result_columns": COLUMNS,
        "results": rows,
        "durations": {},
        "version": 2,
    }


def write(folder, content, side=None, machine="box", name=f"{COMMIT[:8]}-env"):
    """One results file, and its side file where lines are given: objects, or text as it stands."""
    path = folder / machine / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))
    if side is not None:
        lines = [line if isinstance(line, str) else json.dumps(line) for line in side]
        compressed.write_text(side_lines.path(path), "\n".join(lines) + "\n")
    return path


def benchmark(*params, names=(), version="1", **more):
    return {"params": list(params), "param_names": list(names), "version": version, "unit": "seconds", **more}


def line(name, *params, **facts):
    return {"benchmark": name, "params": list(params), **facts}


OURS = {
    "conv2d.Size.time_conv2d": benchmark(
        ["'cpu.loops'", "'cpu.torch'"],
        ["'7x7'", "'64x64'"],
        names=["implementation", "size"],
        axis="size",
        baseline="cpu.torch",
        implementations={"cpu.loops": {"device": "cpu", "family": "direct"}},
        problems={"'7x7'": {"label": "n1c1h7w7k1r3s3p1", "flops": 882, "bytes": 428, "dtype": "float32"}},
    )
}
SIZE = "conv2d.Size.time_conv2d"
SIZE_PARAMS = OURS[SIZE]["params"]


def load(tmp_path, rows, known=OURS, side=None):
    cells = results.load(write(tmp_path, document(rows), side), known).cells
    assert list(cells.columns) == results.COLUMNS
    return cells


def without(key):
    content = document({SIZE: stored([1.0] * 4, SIZE_PARAMS)})
    del content[key]
    return json.dumps(content)


def with_rows(rows):
    return json.dumps(document(rows))


BROKEN = {
    "empty": "",
    "blank": "\n",
    "half an object": "{",
    "half a file": json.dumps(document({SIZE: stored([1.0] * 4, SIZE_PARAMS)}))[:400],
    "two objects": "{}{}",
    "not JSON": "<html></html>",
    "not text": b"\xff\xfe\x00\x01",
    "zeros": b"\0" * 300,
    "null": "null",
    "a number": "3",
    "a string": '"results"',
    "a list": "[]",
    "an object without anything": "{}",
    "asv's old format": '{"results": {"b": 1.0}, "params": {"machine": "box"}, "version": 1}',
    "machine.json": '{"arch": "x86_64", "machine": "box", "version": 1}',
    **{f"no {key}": without(key) for key in ("params", "commit_hash", "env_name", "date", "result_columns", "results")},
    "no machine": json.dumps({**document({}), "params": {}}),
    "machine a list": json.dumps({**document({}), "params": ["box"]}),
    "columns a number": json.dumps({**document({SIZE: []}), "result_columns": 3}),
    "results a list": json.dumps({**document({}), "results": []}),
    "results null": json.dumps({**document({}), "results": None}),
    "a row a number": with_rows({SIZE: 3}),
    "a row null": with_rows({SIZE: None}),
    "fewer values than cells": with_rows({SIZE: stored([1.0], SIZE_PARAMS)}),
    "fewer quartiles than cells": with_rows({SIZE: stored([1.0] * 4, SIZE_PARAMS, q25=[1.0])}),
    "fewer samples than cells": with_rows({SIZE: stored([1.0] * 4, SIZE_PARAMS, samples=[[1.0]])}),
    "values a number": with_rows({SIZE: stored(1.0, SIZE_PARAMS)}),
    "parameters a number": with_rows({SIZE: [[1.0], 3, "1"]}),
}


def put(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
