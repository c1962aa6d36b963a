"""The comment script checks the shape of a report."""

import contextlib
import copy
import itertools
import re

import pytest
from comments import FOREIGN, GOOD, RUN, comment, harmless, parse, report, script
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.gate.report import ORDER


def places(value, path=()):
    """Every place in a report."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def replaced(content, path, value):
    """The report with another value in a place."""
    if not path:
        return value
    changed = copy.deepcopy(content)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return changed


WRONG = {
    "a long text": "x" * 10_001,
    "a large number": 10**10,
    "a very large number": 10**19,
    "a list of lists": [[[]]],
    "an object of a list": {"x": [{}]},
    "a long list": [None] * 10_001,
}
# What a base from before it came does not write.
LATER = ("proposed", "proposal_error", "other_environments", "differences", "compared", "traceback")
LATER += ("schema", "version", "shard", "partial", "smallest", "unit", "values")
LATER += ("touched", "untouched", "identical", "ignored", "measured_on")
COMPLETE = report(proposed=[{"cell": "a", "reason": FOREIGN}], proposal_error=FOREIGN)


@pytest.mark.parametrize("path", list(places(COMPLETE)), ids=lambda path: ".".join(map(str, path)) or "all")
def test_no_place_of_a_report_takes_everything(path):
    assert parse(COMPLETE) == COMPLETE
    for name, value in WRONG.items():
        with pytest.raises(script.Refused):
            pytest.fail(f"{name} was taken: {parse(replaced(COMPLETE, path, value))}"[:200])


@pytest.mark.parametrize("path", [(), ("cells", 0), ("not_timed", 0), ("proposed", 0)], ids=str)
def test_the_keys_of_a_report_are_known(path):
    there = COMPLETE
    for key in path:
        there = there[key]
    for key in there:
        rest = {name: value for name, value in there.items() if name != key}
        if key in LATER:
            parse(replaced(COMPLETE, path, rest))
            continue
        with pytest.raises(script.Refused, match="does not have the keys"):
            parse(replaced(COMPLETE, path, rest))
    with pytest.raises(script.Refused, match="does not have the keys"):
        parse(replaced(COMPLETE, path, there | {"more": 1}))


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (("exit_status",), [-1, 5, 1.0, True, "0", None]),
        (("rounds",), [-1, 1.5, True, "1"]),
        (("seconds",), [-1, True, "1", None]),
        (("cells",), [None, {}, "", [None], [[]]]),
        (("cells", 0, "verdict"), ["passes", "Same", "", None, 0, ["same"], {"same": 1}]),
        (("cells", 0, "benchmark"), [None, 1, True, ["a"]]),
        (("cells", 0, "params"), [None, "'7x7'", {"0": "a"}, [1], [None]]),
        (("cells", 0, "before"), [True, 1, "1", [1]]),
        (("cells", 0, "ratio"), [-0.5, False, "1"]),
        (("cells", 0, "interval"), [[], [1], [1, 1, 1], ["1", "1"], [1, -1], [1, True], "ab", {"0": 1, "1": 1}]),
        (("cells", 0, "accepted"), [True, 1, []]),
        (("proposed",), [None, "a", {"cell": "a", "reason": "b"}]),
        (("settings", "level"), [{}, [[]], [{}]]),
        ((), [None, [], "report", 1, True]),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_refused(path, values):
    for value in values:
        with pytest.raises(script.Refused):
            pytest.fail(f"{value!r} was taken: {parse(replaced(COMPLETE, path, value)) is None}")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[" * 2_000_000,
        '{"a":' * 500_000,
        "[" * 100_000 + "]" * 100_000,
        "1" * 4_000_000,
        GOOD["gate_json"] + "x",
        "\ufeff" + GOOD["gate_json"],
        *(
            GOOD["gate_json"].replace('"ratio": 1.25', f'"ratio": {value}')
            for value in ("NaN", "Infinity", "-Infinity", "1e999")
        ),
        *(GOOD["gate_json"].replace('"level": 0.95', f'"level": {value}') for value in ("NaN", "Infinity", "1e999")),
        GOOD["gate_json"].replace('"rounds": 13,', f'"rounds": {"1" * 5000},', 1),
        GOOD["gate_json"].replace('"ratio": 1.25', '"ratio": 1.25, "ratio": 1.25'),
        GOOD["gate_json"].replace('"exit_status": 1', '"exit_status": 1, "exit_status": 0'),
        GOOD["gate_json"].replace('"level": 0.95', '"level": 0.95, "level": 0.95'),
        GOOD["gate_json"].replace('"level": 0.95', '"level": ' + "[" * 50_000 + "]" * 50_000),
    ],
    ids=itertools.count(),
)
def test_a_text_that_is_no_such_json_is_refused(github, text):
    assert text != GOOD["gate_json"]
    with pytest.raises(script.Refused):
        parse(text)
    server = github(gate_json=text)
    status, printed = comment(server)
    assert status == 1
    assert re.fullmatch(r"refused: [ -~]+\n", printed)
    assert server.written() == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(ORDER),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(list(COMPLETE)), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(JSON, st.sampled_from(list(places(COMPLETE))))
def test_whatever_stands_in_a_place_the_report_is_refused_or_shown(value, path):
    with contextlib.suppress(script.Refused):
        harmless(script.compose(parse(replaced(COMPLETE, path, value)), RUN))
