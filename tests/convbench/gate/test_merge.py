"""Shards of a gate are judged as one gate."""

import json
import random

import pytest
from command_line import inside
from gate_commits import built_by

from convbench.gate import formats, judge
from convbench.gate import merge as merging
from convbench.gate.failures import Usage
from convbench.gate.report import Report, Row


def report(shard, rows, **changes):
    made = Report(
        "b" * 40, "h" * 40, {"machine": "box"}, {"level": 0.95}, rows, environment="env", shard=shard, rounds=4, seconds=9.0
    )
    return formats.as_json(made) | changes


def rows(count, seed):
    """Cells whose rounds are drawn: a third slower by 30 %, found in the first rounds and again."""
    generator = random.Random(seed)
    for i in range(count):
        change = 0.26 if i % 3 == 0 else 0.0
        drawn = [[generator.gauss(change, 0.01) for _ in range(n)] for n in (4, 5)]
        rounds = {"first": drawn[0], "confirming": drawn[1] if change else []}
        yield Row("a.time_b", [str(i)], "regressed" if change else "same", 1.0, 1.3, 1.3, [1.2, 1.4], 4, log_ratios=rounds)
    for change in (0.0, 3.0):
        values = {"first": [[100.0, 100.0 + change]] * 4, "confirming": [[100.0, 100.0 + change]] * (4 if change else 0)}
        verdict = "regressed" if change else "same"
        yield Row("a.mem_b", [str(change)], verdict, 100.0, 100.0 + change, rounds=4, unit="bytes", values=values)
    yield Row("a.time_new", [], "new", reason="works on the head and fails on the base")


def written(folder, *contents):
    files = [folder / f"{number}.json" for number, _ in enumerate(contents)]
    for file, content in zip(files, contents, strict=True):
        file.write_text(json.dumps(content))
    return files


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 2, 4])
def test_shards_have_the_verdicts_of_one_run_on_the_same_samples(tmp_path, count, seed):
    found = list(rows(23, seed))
    sampled = {row.name: row.values or row.log_ratios for row in found if row.rounds}
    first, again = ({name: of[kind] for name, of in sampled.items()} for kind in ("first", "confirming"))
    expected = judge.decide(first, again)
    merged = merging.merge(written(tmp_path, *(report(f"{k + 1}/{count}", found[k::count]) for k in range(count))))
    assert {row.name: (row.verdict, row.interval) for row in merged.rows if row.name in expected} == {
        name: (finding.verdict, [finding.estimate.low, finding.estimate.high]) for name, finding in expected.items()
    }
    assert {row.params[0]: row.verdict for row in merged.rows if row.values} == {"0.0": "same", "3.0": "regressed"}
    assert {"regressed", "same", "new"} == {row.verdict for row in merged.rows}
    assert (merged.exit_status, merged.rounds) == (1, 4 * count)


def test_what_was_not_confirmed_is_ambiguous():
    found = judge.decide({"a": [0.3, 0.31, 0.3, 0.29], "b": [0.0, 0.01, 0.0, -0.01]}, {"a": [0.3], "b": []})
    assert {name: finding.verdict for name, finding in found.items()} == {"a": "ambiguous", "b": "same"}


FEW = list(rows(2, 0))
REFUSED = {
    "one is missing": ([report("1/3", FEW[:1]), report("3/3", FEW[1:])], "shards are missing: 2/3"),
    "one twice": ([report("1/2", FEW[:1]), report("1/2", FEW[1:])], "are the same shard, 1/2"),
    "split differently": ([report("1/2", FEW[:1]), report("2/3", FEW[1:])], "the shards are of 2 and 3"),
    "no shard": ([report(None, FEW)], "is not a shard: it was measured without --shard"),
    "another commit": ([report("1/2", FEW[:1]), report("2/2", FEW[1:], head="x" * 40)], "head is 'xxx"),
    "other settings": (
        [report("1/2", FEW[:1]), report("2/2", FEW[1:], settings={"level": 0.9})],
        "settings is {'level': 0.9}",
    ),
    "another version": ([report("1/2", FEW[:1]), report("2/2", FEW[1:], version="9")], "version is '9'"),
    "a cell twice": ([report("1/2", FEW), report("2/2", FEW[:1])], "a cell is in several"),
    "an older schema": ([report("1/1", FEW, schema=1)], "its schema is 1, and this version reads 3"),
    "no report": ([{}], "no report of a gate: "),
    "no such shard": ([report("3/2", FEW)], "there is no shard '3/2'"),
    "a billion shards": ([report("1/999999999", FEW)], "there is no shard"),
    "no verdict": ([report("1/1", []) | {"cells": [report("1/1", FEW[:1])["cells"][0] | {"verdict": "x"}]}], "no report of"),
    "cells that another machine lists": (
        [report("1/2", FEW[:1], settings={"all_cells": "a"}), report("2/2", FEW[1:], settings={"all_cells": "b"})],
        "settings is {'all_cells': 'b'}",
    ),
    "a list": ([[]], "no report of a gate: "),
    "rounds that are no numbers": (
        [report("1/1", FEW[:1]) | {"cells": [report("1/1", FEW[:1])["cells"][0] | {"log_ratios": {"first": ["x"]}}]}],
        "no report of a gate: ",
    ),
    "values of one side": (
        [report("1/1", FEW[:1]) | {"cells": [report("1/1", FEW[2:3])["cells"][0] | {"values": {"first": [[1], [1, 2]]}}]}],
        "no report of a gate: ",
    ),
    "cells of another kind": ([report("1/1", []) | {"cells": [{"a": 1}]}], "no report of a gate: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(tmp_path, case):
    contents, said = REFUSED[case]
    with pytest.raises(Usage) as error:
        merging.merge(written(tmp_path, *contents))
    assert said in error.value.message


def test_a_shard_that_ended_early_is_a_failure_of_all(tmp_path):
    ended = report("2/2", FEW[1:], error="interrupted", exit_status=4)
    merged = merging.merge(written(tmp_path, report("1/2", FEW[:1]), ended))
    assert merged.failure.message == "shard 2/2: interrupted"


@pytest.mark.slow
def test_two_shards_of_a_real_gate(sample, python, tmp_path):
    """Every cell is in one of them, and the merged report says what a whole gate would."""
    files = [tmp_path / f"{k}.json" for k in (1, 2)]
    with built_by(python):
        for k, file in enumerate(files, 1):
            sides = sample.commits["base"], sample.commits["slower"]
            more = ("--bench", "Filled.time_filled", "--shard", f"{k}/2", "--json", str(file), "--budget", "0.5")
            inside(sample.folder, "gate", *sides, *more)
    done = inside(sample.folder, "gate", "--merge", *map(str, files), "--json", str(tmp_path / "all.json"))
    assert done.returncode == 1, done.stderr
    merged = json.loads((tmp_path / "all.json").read_text())
    parts = [json.loads(file.read_text())["cells"] for file in files]
    assert all(parts)
    assert len(merged["cells"]) == sum(map(len, parts))
    assert {cell["verdict"] for cell in merged["cells"]} == {"regressed", "skipped"}


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b", "1/0", "1/9999", "-1/2"])
def test_what_is_no_shard(sample, shard):
    done = inside(sample.folder, "gate", "--shard", shard)
    assert done.returncode == 2
    assert "is not a shard such as 2/5" in done.stderr
