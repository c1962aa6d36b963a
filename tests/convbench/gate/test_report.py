"""The outcome of a gate and its reports: findings in, words out, nothing measured."""

import json
import math
import re
import shlex
from pathlib import Path

import click
import pytest
import screens
from gate_reports import SCHEMA, VALIDATOR, valid
from rich.console import Console
from shown_reports import EVERYTHING, NASTY, SLOWER, ended

from convbench.gate import failures, formats, judge, report
from convbench.gate.accept import Acceptance
from convbench.gate.failures import Failure, HeadBroken
from convbench.gate.report import Row
from convbench.gate.sample import CellState
from convbench.gate.workers import TimedCell

# The exit status


def row(verdict, name="a.time_a", rounds=8, **more):
    return Row(name, [], verdict, rounds=rounds, **more)


QUIET = [row("same"), row("ambiguous"), row("improved"), row("new", rounds=0), row("skipped", rounds=0)]
SLOW = row("regressed")
ACCEPTED = row("regressed", accepted="accepted by --accept: it is right now")
LOST = row("not measured", rounds=0)
BROKEN = row("broken", rounds=0)
BUILD = {"failure": HeadBroken("the head does not build: no")}
STOPPED = {"failure": Failure("interrupted: by hand")}


@pytest.mark.parametrize(
    ("found", "more", "status"),
    [
        (QUIET, {}, 0),
        ([row("ambiguous")], {}, 0),
        ([row("improved")], {}, 0),
        ([*QUIET, SLOW], {}, 1),
        ([*QUIET, ACCEPTED], {}, 0),
        ([*QUIET, ACCEPTED, SLOW], {}, 1),
        ([*QUIET, BROKEN], {}, 3),
        ([*QUIET, BROKEN, SLOW, LOST], {}, 3),
        ([*QUIET, SLOW, LOST], {}, 1),
        ([*QUIET, LOST], {}, 4),
        ([*QUIET, ACCEPTED, LOST], {}, 4),
        ([], {}, 4),
        ([row("skipped", rounds=0)], {}, 4),
        ([row("new", rounds=0)], {}, 4),
        ([], BUILD, 3),
        ([], STOPPED, 4),
        (QUIET, STOPPED, 4),
        ([*QUIET, SLOW], STOPPED, 1),
        ([*QUIET, BROKEN], STOPPED, 3),
    ],
)
def test_the_exit_status(found, more, status):
    result = ended(*found, **more)
    assert result.exit_status == status
    if not result.failure or result.failure.exit_code != status:
        assert result.summary.endswith(f"The gate {report.MEANING[status]}.")
    else:
        assert result.summary.endswith(f": {result.failure.message.partition(':')[0]}.")
    assert formats.as_json(result)["exit_status"] == status


def test_the_summary_counts():
    result = ended(*QUIET, SLOW, ACCEPTED, row("same"), rounds=9, seconds=61.7)
    assert result.summary.startswith(
        "1 accepted, 1 regressed, 1 ambiguous, 1 improved, 1 new, 2 same, 1 skipped; 9 rounds in 62 s. "
    )
    assert ended().summary.startswith("no cell; 0 rounds in 0 s. ")


# Rows


def state(name="a.time_a", params=(), verdict=None, **more):
    return CellState(TimedCell(name, params, {"base": 0, "head": 0}, 60.0, 0.01, 1, Path("run")), verdict=verdict, **more)


def measured(verdict, ratio, name, **more):
    """A cell of 7 rounds with a given ratio of the head to the base."""
    values = [math.log(ratio)] * 7
    finding = judge.judge({"": values})[""]
    seconds = {"base": [1e-3] * 7, "head": [ratio * 1e-3] * 7}
    return state(name, verdict=verdict, ratios=values, finding=finding, measured=seconds, **more)


def test_rows_are_sorted_worst_first():
    states = [
        measured("same", 1.0, "a.same"),
        state("a.skipped", verdict="skipped"),
        measured("regressed", 1.1, "a.slower"),
        measured("improved", 0.9, "a.faster"),
        measured("regressed", 1.5, "a.slowest"),
        state("a.broken", verdict="broken"),
        measured("ambiguous", 1.0, "b.unclear"),
        measured("ambiguous", 1.0, "a.unclear"),
        state("a.lost", verdict="not measured"),
        state("a.new", verdict="new"),
    ]
    names = [found.name.partition(".")[2] for found in report.rows(states, [])]
    assert names == ["broken", "slowest", "slower", "lost", "unclear", "unclear", "faster", "new", "same", "skipped"]
    assert [found.name for found in report.rows(states, []) if "unclear" in found.name] == ["a.unclear", "b.unclear"]


def test_a_row_holds_what_was_measured():
    (found,) = report.rows([measured("regressed", 1.5, "a.time_a")], [])
    assert (found.before, found.after) == pytest.approx((1e-3, 1.5e-3))
    assert found.ratio == pytest.approx(1.5)
    assert found.interval == pytest.approx([1.5, 1.5], abs=1e-6)
    assert found.rounds == 7


def test_only_the_rounds_that_confirm_decide():
    """The first rounds of a suspected cell are in the report, but its times are not theirs."""
    suspected = measured("regressed", 1.5, "a.time_a", suspected="regressed")
    suspected.confirming = [math.log(1.2)] * 6
    suspected.measured = {"base": [5.0] * 7 + [1.0] * 6, "head": [5.0] * 7 + [1.2] * 6}
    (found,) = report.rows([suspected], [])
    moved = math.sqrt(1.2 / found.ratio)
    assert (found.before, found.after, found.rounds) == (pytest.approx(moved), pytest.approx(1.2 / moved), 13)
    assert [len(values) for values in found.log_ratios.values()] == [7, 6]


def test_what_was_not_finished():
    (found,) = report.rows([state()], [])
    assert (found.verdict, found.reason, found.before, found.ratio) == ("not measured", "it was not finished", None, None)


@pytest.mark.parametrize("verdict", [verdict for verdict in report.ORDER if verdict != "regressed"])
def test_only_regressions_are_accepted(verdict):
    (found,) = report.rows([state(verdict=verdict)], [Acceptance("*", "r", "f")])
    assert found.accepted is None


def test_a_regression_is_accepted_by_its_name_with_parameters():
    slower = state("a.time_a", ("[1, 2]", "'x'"), "regressed")
    (found,) = report.rows([slower], [Acceptance("a.time_a([1, 2], 'x')", "exact now", "--accept")])
    assert found.accepted == "accepted by --accept: exact now"
    assert found.verdict == "regressed"


# Reports


def terminal(result, width=140):
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        formats.show(result, console)
    return "".join(line.rstrip() + "\n" for line in capture.get().splitlines())


def test_a_malformed_file_of_the_head_is_told():
    result = ended(SLOW, proposal_error="convbench-accept.toml may hold only [[accept]] tables")
    for text in (terminal(result), formats.as_markdown(result)):
        assert "The head's convbench-accept.toml may hold" in text
        assert "and proposes nothing" in text
    assert formats.as_json(result)["proposal_error"].startswith("convbench-accept.toml may hold")


def test_what_is_proposed_is_reported_and_accepts_nothing():
    proposed = [Acceptance("a.time_a", "exact\n::error::now", "f"), Acceptance("<b>*", "@you | #1", "f")]
    result = ended(SLOW, proposed=proposed)
    assert result.exit_status == failures.REGRESSED
    assert "\nproposed by the head, and not accepted: a.time_a (exact ::error::now)\n" in terminal(result)
    markdown = formats.as_markdown(result)
    assert "Proposed by the head, and not accepted:\n\n* <code>a.time&#95;a</code>: exact ::error::now\n" in markdown
    assert "* <code>&#60;b&#62;&#42;</code>: &#64;you &#124; &#35;1" in markdown
    assert formats.as_json(result)["proposed"] == [{"cell": each.cell, "reason": each.reason} for each in proposed]


def test_the_markdown_is_as_it_was():
    screens.require_same("gate.md", formats.as_markdown(EVERYTHING))


def test_markdown_says_nothing_of_its_own():
    """Outside of code, names and reasons produce no HTML, no table and no mention of a user."""
    text = formats.as_markdown(EVERYTHING)
    prose = "".join(part for block in text.split("```")[::2] for part in block.split("`")[::2])
    prose = re.sub(r"&#\d+;", "", prose)
    for word in ("<script", "@someone", "](y)", "*z*", "#1"):
        assert word not in prose
    (line,) = [line for line in text.splitlines() if line.startswith("|") and "script" in line]
    assert line.replace("\\|", "").count("|") == 8
    assert "Traceback" not in text


@pytest.mark.parametrize("name", ["a`b", "a``b", "```", "`", "a\nb", "a` <b> @x `b"])
def test_markdown_of_names_with_ticks(name):
    text = formats.as_markdown(ended(Row("a.time_a", [repr(name)], "regressed", **SLOWER, reason=f"{name} <b>@x")))
    text, fence, _ = text.partition("\n```\n")
    assert fence  # what follows is code, a line a finding, and none of them begins with a tick
    assert "<b>" not in text
    assert "@x" not in text
    assert len({line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|")}) == 1


MANY = [
    *(
        Row(f"{module}.Class.time_it", [str(n)], "ambiguous", 1.0, 1.0, 1.0, [0.9, 1.1], 40)
        for module in "ba"
        for n in range(30)
    ),
    Row("c.sub.time_it", [], "not measured", reason="fails on both sides: OSError"),
    Row("c.sub.time_slow", [], "regressed", **SLOWER),
]


@pytest.mark.parametrize("rendered", [terminal, formats.as_markdown])
def test_over_60_rows_are_counted_by_module_and_changes_are_listed_first(rendered):
    text = rendered(ended(*MANY)).replace("<code>", "").replace("</code>", "").replace("* ", "").replace("&#95;", "_")
    assert re.findall(r"^([abc][.\w]*: \d+ .*)$", text, re.MULTILINE) == [
        *("a: 30 ambiguous", "b: 30 ambiguous", "c.sub: 1 not measured"),
    ]
    assert text.index("c.sub.time_slow") < text.index("a: 30")
    assert "Class" not in text
    assert "fails on both sides: OSError" in text
    assert text.count("convbench gate 0123456789") == 1
    few = rendered(ended(*MANY[2:]))
    assert few.count("Class") >= 58
    assert ": 30 ambiguous" not in few
    assert len(formats.as_json(ended(*MANY))["cells"]) == 62


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("a.time_b", "a"),
        ("a.b.time_c", "a.b"),
        ("a.B.time_c", "a"),
        ("B.time_c", "B"),
        ("a.b.C.time_d", "a.b"),
        ("odd", "odd"),
    ],
)
def test_the_module_of_a_benchmark(name, module):
    assert Row(name, [], "same").module == module


def test_many_that_are_the_same():
    same = [Row("a.time_same", [str(n)], "same", 1.0, 1.0, 1.0, [0.99, 1.01], 6) for n in range(700)]
    assert "\na: 700 same\n" in terminal(ended(*same))
    assert len(formats.as_markdown(ended(*same))) < 500


def test_markdown_of_nothing():
    assert "no cell" in formats.as_markdown(ended(**STOPPED))
    assert "interrupted: by hand" in formats.as_markdown(ended(**STOPPED))


@pytest.mark.parametrize("width", [20, 60, 140])
def test_nothing_in_a_name_is_markup(width):
    odd = Row("a.time_a", ["'[red]x[/red]'", "'[/]'"], "broken", reason="[bold]no[/bold] [/]")
    said = terminal(ended(odd), width)
    assert "[bold]no[/bold] [/]" in said
    assert "a.time_a('[red]x[/red]', '[/]')" in "".join(said.split("\n")) or width < 140


def test_only_the_same_are_still_shown_when_all_are():
    assert "a.time_a" in terminal(ended(row("same")))


def test_the_json_has_all_the_fields():
    content = formats.as_json(EVERYTHING)
    assert content == json.loads(json.dumps(content, allow_nan=False))
    assert {"base", "head", "machine", "settings", "exit_status", "error", "summary", "cells", "not_timed"} <= content.keys()
    assert content["machine"]["machine"] == "box"
    assert content["settings"] == {"level": 0.95}
    assert content["exit_status"] == 3
    fields = {"benchmark", "params", "verdict", "before", "after", "ratio", "interval", "rounds"}
    for cell in content["cells"]:
        assert fields <= cell.keys()
        assert all(isinstance(value, str) for value in cell["params"])
        assert cell["verdict"] in report.ORDER
    assert content["cells"][1]["before"] == 1e-3
    assert content["cells"][1]["interval"] == [1.2, 1.3]
    assert content["not_timed"][0] == {"benchmark": "a.Ceiling.time_copy", "reason": "measures the machine, not the code"}


def test_the_schema_knows_what_a_report_has():
    """It allows nothing else: a change of reports is a change of the schema and of its version."""
    VALIDATOR.check_schema(SCHEMA)
    cell = SCHEMA["$defs"]["cell"]
    assert SCHEMA["properties"]["schema"] == {"const": report.SCHEMA}
    assert cell["properties"]["verdict"] == {"enum": list(report.ORDER)}
    for one in (SCHEMA, cell):
        assert sorted(one["required"]) == sorted(one["properties"])
    content = valid(formats.as_json(EVERYTHING))
    (first, *_), wrong = content["cells"], {"verdict": "slower", "before": "1 ms", "interval": [1], "more": 1}
    for key, value in wrong.items():
        assert not VALIDATOR.is_valid(content | {"cells": [first | {key: value}]}), key
    for key in content:
        assert not VALIDATOR.is_valid({name: value for name, value in content.items() if name != key})


def test_what_is_no_number_is_null():
    odd = Row("a", [], "ambiguous", math.nan, math.inf, -math.inf, [math.nan, 1.0], 6, log_ratios={"first": [math.nan]})
    (cell,) = json.loads(json.dumps(formats.as_json(ended(odd)), allow_nan=False))["cells"]
    assert (cell["before"], cell["after"], cell["ratio"], cell["interval"]) == (None, None, None, [None, 1.0])
    assert cell["log_ratios"] == {"first": [None]}


def test_the_line_that_repeats_a_finding_is_one_word_of_a_shell():
    words = shlex.split(formats.again(EVERYTHING, NASTY))
    assert words[:4] == ["convbench", "gate", "0123456789", "ba98765432"]
    assert words[4] == "--bench"
    assert len(words) == 6
    assert re.search(words[5], NASTY.name)
    assert not re.search(words[5], f"{NASTY.name}x")


def test_a_report_is_written_in_one_step(tmp_path):
    file = tmp_path / "report.json"
    file.write_text("before")
    formats.write_json(file, EVERYTHING)
    assert json.loads(file.read_text()) == formats.as_json(EVERYTHING)
    assert list(tmp_path.iterdir()) == [file]


def test_a_report_that_cannot_be_written(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(click.ClickException) as caught:
        formats.write(tmp_path / "taken", "text")
    assert "taken cannot be written: " in caught.value.message
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
