"""The text of a comment: numbers, verdicts and names, without anything that GitHub interprets."""

import json

import pytest
from comments import FOREIGN, MARKER, RUN, SLOWER, comment, harmless, parse, report, script, shown
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.gate import failures, formats
from convbench.gate.accept import Acceptance
from convbench.gate.report import MEANING, ORDER, Report, Row

HOSTILE = [
    *(
        "@octocat",
        "a@example.com",
        "@octo-org/team",
        "&#64;octocat",
        "&commat;octocat",
        "mailto:a@example.com",
        "xmpp:a@b.cd",
    ),
    *(
        "#12",
        "GH-12",
        "octo-org/repo#12",
        "octo-org/repo@8f2b1c4d",
        "8f2b1c4de90a7735c1f6a24b0d93e85fd6a7710c",
        "CVE-2021-44228",
    ),
    *(
        "https://example.com",
        "www.example.com",
        "//example.com",
        "[a](https://example.com)",
        "![a](https://example.com/a.png)",
    ),
    *(
        "<https://example.com>",
        "[a]: https://example.com",
        "[^1]",
        "<a href=x>",
        "<img src=x>",
        "<script>",
        "<!-- a",
        MARKER,
        "-->",
    ),
    *(
        "</code>",
        "`",
        "```",
        "``\n```",
        "~~~",
        "|",
        "a | b",
        "\\|",
        "\\",
        "*a*",
        "_a_",
        "__a__",
        "~~a~~",
        "$a$",
        "$$a$$",
        ":tada:",
    ),
    *(
        "# a",
        "> a",
        "- a",
        "1. a",
        "---",
        "===",
        "\n\n# a",
        "\r\n/close",
        "/label bug",
        "\n/assign @octocat",
        "[x]",
        "- [ ] a",
        "::error::a",
    ),
    *(
        "\0",
        "\x1b[2J",
        "\x7f",
        "\u200b",
        "\u202e",
        "\u2066a\u2069",
        "\u00ad",
        "\ufeff",
        "\U000e0041",
        "\ud800",
        "\u2028",
        "\u3000",
    ),
    *("\ufe0f", "\U000e0100", "\u0301" * 50, "\u034f", "\u115f", "\u2800", "\u3164", "\uffa0"),
    *("&lt;script&gt;", "&#60;b&#62;", "<details>", "</td></tr></table>", "x" * 3000, "é", "畳み込み", "😀", ""),
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
@pytest.mark.parametrize("place", ["benchmark", "params"])
def test_a_name_means_nothing_to_github(name, place):
    row = Row(name, [], "broken") if place == "benchmark" else Row("a.time_a", [name, name], "regressed", **SLOWER)
    (seen,) = shown(row)
    assert len(seen.replace("@\u200b", "@")) <= 201
    assert "@" not in seen.replace("@\u200b", "")
    for character in seen.replace("@\u200b", "@"):
        assert character.isprintable()


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=300), min_size=1, max_size=3), st.sampled_from(["broken", "regressed", "new"]))
def test_no_name_means_anything_to_github(words, verdict):
    (seen,) = shown(Row(words[0], words[1:], verdict))
    name = Row(words[0], words[1:], verdict).name
    assert len(seen.replace("@\u200b", "@")) == min(len(name), 201)
    for before, after in zip(name[:200], seen.replace("@\u200b", "@"), strict=False):
        assert (
            after == before
            or (after == "\ufffd" and not before.isascii())
            or (after == "\ufffd" and not before.isprintable())
        )


@pytest.mark.parametrize("field", ["reason", "accepted", "answer", "notes"])
@pytest.mark.parametrize("verdict", ORDER)
def test_the_words_of_the_measured_code_are_not_shown(field, verdict):
    shown(Row("a.time_a", [], verdict, **{field: [FOREIGN] if field == "notes" else FOREIGN}))


@pytest.mark.parametrize("field", ["summary", "error", "environment", "base", "head"])
def test_the_words_of_a_report_are_not_shown(field):
    harmless(script.compose(parse(report(**{field: FOREIGN})), RUN))


def test_the_commit_is_that_of_the_event():
    body = script.compose(parse(report(base="1" * 40, head="2" * 40)), RUN)
    assert "8f2b1c4d" in body
    assert "1111" not in body
    assert "2222" not in body


@pytest.mark.parametrize(("count", "length", "fits"), [(100, 5, True), (101, 5, False), (3000, 5, False), (100, 300, False)])
def test_a_long_report_is_cut_at_a_row(github, count, length, fits):
    found = [Row("\U0001f600" * length, [str(number)], "regressed", **SLOWER) for number in range(count)]
    server = github(gate_json=json.dumps(report(found)))
    assert comment(server)[0] == 0
    body = server.comments[0]["body"]
    names = harmless(body)
    more = "" if fits else f"and {count - len(names)} more; see the run\n"
    assert body.endswith(f"1.200 to 1.300 |\n{more and chr(10)}{more}")
    assert fits == (len(names) == count)
    assert len(names) >= 20
    assert f"{count} regressed" in body


@pytest.mark.parametrize("status", range(5))
@pytest.mark.parametrize("conclusion", ["success", "failure"])
def test_the_status_in_our_words(status, conclusion):
    body = script.compose(parse(report(exit_status=status)), RUN | {"conclusion": conclusion})
    assert f"### Speed: the gate {script.STATUS[status]}\n" in body
    assert ("The run itself ended otherwise: " in body) == ((status == 0) != (conclusion == "success"))
    if status in MEANING and status != failures.HEAD_BROKEN:
        assert script.STATUS[status] == MEANING[status]
    assert script.VERDICTS == ORDER


def test_nothing_measured():
    assert "\n\nno cells\n" in script.compose(parse(report([], exit_status=4)), RUN)


def test_what_the_head_proposes_is_counted():
    proposing = Report("b", "c", {}, {}, proposed=[Acceptance(FOREIGN, FOREIGN, "f")] * 2, proposal_error=FOREIGN)
    body = script.compose(parse(formats.as_json(proposing)), RUN)
    assert "\n\nAccepted regressions that the head proposes, and that do not count here: 2.\n" in body
    assert "\n\nThe head's file of accepted regressions cannot be read.\n" in body
    harmless(body)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, ""), (0, "0.00 ns"), (4e-12, "0.00 ns"), (1.234e-7, "123 ns"), (1.25e-5, "12.5 us"), (0.0312, "31.2 ms")),
        *((1, "1.00 s"), (59.94, "59.9 s"), (1e9, "1000000000 s")),
    ],
)
def test_seconds(value, said):
    assert script.quantity(value, {}) == script.quantity(value, {"unit": "seconds"}) == said


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        *((0.0, "bytes", "0.00 B"), (4096.0, "bytes", "4.00 KiB"), (-5e7, "bytes", "-47.7 MiB"), (1e12, "bytes", "931 GiB")),
        *((1234567.0, "files", "1.235e06"), (-0.5, FOREIGN, "-0.5"), (1e300, "", "1e300")),
    ],
)
def test_values(value, unit, said):
    assert script.quantity(value, {"unit": unit}) == said


@pytest.mark.parametrize("unit", ["files", "@everyone", "</code><b>" * 50, "|", "\n\n# x", ""])
def test_a_unit_is_shown_as_the_name_is(unit):
    (name,) = shown(Row("a.track_size", ["1"], "regressed", 1e3, 1.02e3, 1.02, [1.02, 1.02], 8, unit=unit))
    assert name.startswith("a.track_size(1) in ")
    (name,) = shown(Row("a.peakmem_it", [], "regressed", 1e3, 1.02e3, 1.02, [1.02, 1.02], 8, unit="bytes"))
    assert name == "a.peakmem_it"
