"""The script that comments what the gate found on a pull request, and a GitHub of our own for it to speak to."""

import contextlib
import copy
import html
import http.server
import importlib.util
import io
import itertools
import json
import re
import string
import subprocess
import sys
import threading
import tracemalloc
import urllib.parse
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from convbench.gate import report as outcome
from convbench.gate.accept import Acceptance
from convbench.gate.report import Outcome, Row

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / ".github" / "scripts" / "comment.py"
EVENT = ROOT / "tests" / "golden" / "workflow_run.json"
RUN = json.loads(EVENT.read_text(encoding="utf-8"))["workflow_run"]
TOKEN = "the token"
MARKER = "<!-- convbench gate -->"
BOT = "github-actions[bot]"

spec = importlib.util.spec_from_file_location("comment", SCRIPT)
assert spec is not None
assert spec.loader is not None
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


SLOWER = {"before": 1.0e-3, "after": 1.25e-3, "ratio": 1.25, "interval": [1.2, 1.3], "rounds": 13}
FOREIGN = "CANARY"  # free text of the measured code, of which nothing is shown
ROWS = [
    Row("a.time_slow", ["10", "'7x7'"], "regressed", **SLOWER, reason=FOREIGN, notes=[FOREIGN]),
    Row("a.time_slow", ["20", "'7x7'"], "regressed", **SLOWER, accepted=f"accepted by {FOREIGN}"),
    Row("a.time_lost", [], "not measured", reason=FOREIGN),
    Row("a.time_fast", [], "improved", 2.0, 1.0, 0.5, [0.49, 0.51], 12, log_ratios={"first": [-0.7], "confirming": []}),
    Row("a.time_same", [], "same", 5e-8, 5e-8, 1.0, [0.999, 1.001], 6, answer=FOREIGN),
    Row("a.time_skipped", [], "skipped", reason=FOREIGN),
]


def report(found=ROWS, **more):
    """What a gate writes as gate.json."""
    chosen = {"level": 0.95, "first_rounds": 4, "budget_seconds": None, "quick": False, "bench": [FOREIGN]}
    result = Outcome("b" * 40, "c" * 40, {"machine": FOREIGN}, chosen, list(found), rounds=13, seconds=61.5)
    result.listed, result.environment = [(FOREIGN, FOREIGN)], FOREIGN
    return outcome.as_json(result) | more


STARTED = f"From [the run]({RUN['html_url']}) that measured 8f2b1c4d; its summary has the whole report."
REPORT = f"""{MARKER}
### Speed: the gate fails: cells have regressed

{STARTED}

1 accepted, 1 regressed, 1 not measured, 1 improved, 1 same, 1 skipped

| verdict | cell | before | after | ratio | interval |
|---|---|---:|---:|---:|---|
| regressed | <code>a&#46;time&#95;slow(10, '7x7')</code> | 1.00 ms | 1.25 ms | 1.250 | 1.200 to 1.300 |
| regressed, accepted | <code>a&#46;time&#95;slow(20, '7x7')</code> | 1.00 ms | 1.25 ms | 1.250 | 1.200 to 1.300 |
| not measured | <code>a&#46;time&#95;lost</code> |  |  |  |  |
| improved | <code>a&#46;time&#95;fast</code> | 2.00 s | 1.00 s | 0.500 | 0.490 to 0.510 |
"""


def packed(method=zipfile.ZIP_DEFLATED, **files):
    """A zip as GitHub makes one of an artifact. `gate_md` stands for gate.md."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


GOOD = {"gate_md": f"# {FOREIGN}", "gate_json": json.dumps(report(), indent=1), "number": "12\n"}


class Github:
    """As much of GitHub as the script needs, on this machine."""

    def __init__(self, data):
        self.data = data
        self.artifacts = [{"id": 3, "name": "gate", "expired": False, "size_in_bytes": len(data)}]
        self.pulls = {12: self.pull()}
        self.comments = []
        self.asked = []
        self.status = {}  # of answers that fail, by method and path
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self):
                size = int(self.headers.get("Content-Length", 0))
                status, headers, body = outer.answer(self.command, self.path, self.headers, self.rfile.read(size))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the script stops at its limit
                    self.wfile.write(body)

            do_GET = do_POST = do_PATCH = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=[0.01], daemon=True).start()

    @staticmethod
    def pull(**changes):
        """The pull request from a fork that the recorded event belongs to."""
        head = {"sha": RUN["head_sha"], "repo": {"id": RUN["head_repository"]["id"], "full_name": "hubot/convbench"}}
        return {"number": 12, "state": "open", "head": head, "base": {"repo": {"full_name": "octo-org/convbench"}}} | changes

    def answer(self, method, target, headers, content):
        address = urllib.parse.urlparse(target)
        path, query = address.path, dict(urllib.parse.parse_qsl(address.query))
        self.asked.append((method, path))
        if path == "/elsewhere":
            assert "Authorization" not in headers
            return 200, {}, self.data
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        path = path.removeprefix("/repos/octo-org/convbench/")
        if (method, path) in self.status:
            return self.status[method, path], {}, b"{}"
        if path == f"actions/runs/{RUN['id']}/artifacts":
            return self.json({"total_count": len(self.artifacts), "artifacts": self.artifacts})
        if path == "actions/artifacts/3/zip":
            return 302, {"Location": f"{self.address}/elsewhere"}, b""
        if found := re.fullmatch(r"pulls/(\d+)", path):
            pull = self.pulls.get(int(found[1]))
            return self.json(pull) if pull else (404, {}, b"{}")
        if path == "issues/12/comments" and method == "GET":
            start = (int(query["page"]) - 1) * int(query["per_page"])
            return self.json(self.comments[start : start + int(query["per_page"])])
        if path == "issues/12/comments" and method == "POST":
            self.comments.append(remark(len(self.comments) + 1, json.loads(content)["body"], BOT))
            return self.json(self.comments[-1])
        if (found := re.fullmatch(r"issues/comments/(\d+)", path)) and method == "PATCH":
            (comment,) = [each for each in self.comments if each["id"] == int(found[1])]
            comment["body"] = json.loads(content)["body"]
            return self.json(comment)
        return 404, {}, b"{}"

    @staticmethod
    def json(content):
        return 200, {"Content-Type": "application/json"}, json.dumps(content).encode()

    def written(self):
        return [(method, path) for method, path in self.asked if method != "GET"]


def remark(number, body, login):
    return {"id": number, "body": body, "user": {"login": login}}


@pytest.fixture
def github():
    started = []

    def start(data=None, **changes):
        server = Github(packed(**GOOD | changes) if data is None else data)
        started.append(server)
        return server

    yield start
    for server in started:
        server.server.shutdown()
        server.server.server_close()


def comment(github, event=EVENT):
    """The script as the workflow starts it; it gets this environment and no other."""
    environment = {
        "GITHUB_API_URL": github.address,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "octo-org/convbench",
        "GITHUB_TOKEN": TOKEN,
    }
    command = [sys.executable, "-I", SCRIPT]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_first_comment_is_made_from_the_standard_library_alone(github):
    server = github()
    done = comment(server)
    assert (done.returncode, done.stdout) == (0, "commented on pull request 12\n"), done.stderr
    (made,) = server.comments
    assert made["body"] == REPORT
    imported = re.findall(r"^(?:import|from) (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(imported) <= sys.stdlib_module_names
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) < 400


def test_the_next_run_updates_that_comment(github):
    server = github()
    comment(server)
    server.data = packed(**GOOD | {"gate_json": json.dumps(report(ROWS[:1]))})
    done = comment(server)
    assert (done.returncode, done.stdout) == (0, "updated the comment on pull request 12\n")
    (made,) = server.comments
    assert "\n\n1 regressed\n\n" in made["body"]


def test_the_comment_is_found_among_many_and_a_forged_one_is_let_be(github):
    server = github()
    forged = remark(1, f"{MARKER}\nmine", "hubot")
    quoting = remark(2, f"> {MARKER}", BOT)
    gone = {"id": 3, "body": "of an account that is deleted", "user": None}
    others = [remark(number, "hello", "octocat") for number in range(4, 150)]
    server.comments = [forged, quoting, gone, *others, remark(150, f"{MARKER}\nold", BOT)]
    assert comment(server).returncode == 0
    assert server.written() == [("PATCH", "/repos/octo-org/convbench/issues/comments/150")]
    assert server.comments[-1]["body"] == REPORT
    assert (forged["body"], quoting["body"]) == (f"{MARKER}\nmine", f"> {MARKER}")


def test_the_newest_attempt_of_a_run_counts(github):
    server = github()
    old, gone = ({"id": number, "name": "gate", "expired": number == 9, "size_in_bytes": 1} for number in (2, 9))
    server.artifacts = [old, *server.artifacts, gone]
    assert comment(server).returncode == 0
    assert server.comments[0]["body"] == REPORT


@pytest.mark.parametrize(
    ("pull", "said"),
    [
        (Github.pull(head={"sha": "0" * 40, "repo": {"id": 869402117}}), "is not the head of pull request 12"),
        (Github.pull(head={"sha": RUN["head_sha"], "repo": {"id": 1}}), "is not the head of pull request 12"),
        (Github.pull(head={"sha": RUN["head_sha"], "repo": None}), "the fork of pull request 12 is gone"),
        (Github.pull(state="closed"), "pull request 12 is not open here"),
        (Github.pull(base={"repo": {"full_name": "other/convbench"}}), "pull request 12 is not open here"),
        (None, "there is no pull request 12"),
    ],
)
def test_an_artifact_that_names_another_pull_request_comments_nowhere(github, pull, said):
    server = github()
    server.pulls = {12: pull}
    done = comment(server)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("no comment: ")
    assert said in done.stdout
    assert server.written() == []


@pytest.mark.parametrize("artifacts", [[], [{"id": 3, "name": "gate", "expired": True, "size_in_bytes": 9}]])
def test_a_run_that_was_not_asked_to_measure_has_nothing_to_say(github, artifacts):
    server = github()
    server.artifacts = artifacts
    done = comment(server)
    assert done.returncode == 0, done.stderr
    assert "no comment: the run left no report" in done.stdout
    assert server.written() == []


def test_a_run_of_something_else_than_a_pull_request_is_passed_over(github, tmp_path):
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"workflow_run": RUN | {"event": "push"}}))
    server = github()
    assert "no comment: the run was not of a pull request" in comment(server, event).stdout
    assert server.asked == []


def twice(data):
    """The archive with gate.json in it a second time."""
    stream = io.BytesIO(data)
    with zipfile.ZipFile(stream, "a") as archive, pytest.warns(UserWarning, match="Duplicate name"):
        archive.writestr("gate.json", GOOD["gate_json"])
    return stream.getvalue()


def flagged(data, flag):
    """The archive with a flag set of every file, where both headers of it have one."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        places = [(member.header_offset + 6, b"PK\x03\x04") for member in archive.infolist()]
    at = -1
    while (at := data.find(b"PK\x01\x02", at + 1)) >= 0:
        places.append((at + 8, b"PK\x01\x02"))
    changed = bytearray(data)
    for place, _ in places:
        changed[place : place + 2] = (int.from_bytes(changed[place : place + 2], "little") | flag).to_bytes(2, "little")
    return bytes(changed)


PACKED_OTHERWISE = "encrypted or not packed as the gate's are"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (b"<html>no zip</html>", "cannot be read"),
        (packed(**GOOD)[:-30], "cannot be read"),
        (packed(gate_json=GOOD["gate_json"]), "cannot be read"),
        (packed(**GOOD | {"gate_json": b"\xff\xfe"}), "cannot be read"),
        (packed(**GOOD | {"number": "12; true"}), "names no pull request"),
        (packed(**GOOD | {"number": "-12"}), "names no pull request"),
        (packed(**GOOD | {"number": "12/comments"}), "names no pull request"),
        (packed(**GOOD | {"number": "١٢"}), "names no pull request"),
        (packed(**GOOD | {"number": "1" * 1000}), "number has more than 20 bytes"),
        (packed(**GOOD | {"gate_json": " \n"}), "gate.json is no JSON"),
        (packed(**GOOD | {"gate_json": "0" * (50 << 20)}), "gate.json has more than 4194304 bytes"),  # 50 kB as a zip
        (bytes((4 << 20) + 1), "the artifact has more than 4194304 bytes"),
        (packed(zipfile.ZIP_BZIP2, **GOOD), PACKED_OTHERWISE),
        (packed(zipfile.ZIP_LZMA, **GOOD), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 1), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 0x40), PACKED_OTHERWISE),
        (flagged(packed(**GOOD), 0x2000), PACKED_OTHERWISE),
        (twice(packed(**GOOD)), "two of one name"),
        (packed(**GOOD, **{f"more{place}": "" for place in range(8)}), "more files than the gate writes"),
    ],
    ids=itertools.count(),
)
@pytest.mark.parametrize("declared", ["truly", "falsely"])
def test_what_the_gate_does_not_write_is_refused(github, data, said, declared):
    server = github(data)
    if declared == "falsely":
        server.artifacts[0]["size_in_bytes"] = 1000
    done = comment(server)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("refused: ")
    assert said in done.stdout
    assert server.written() == []
    too_large = len(data) > 4 << 20 and declared == "truly"
    assert (("GET", "/elsewhere") in server.asked) != too_large  # not even fetched


@pytest.mark.parametrize("size", [100, 1 << 20])
def test_a_size_that_the_archive_lies_about_is_not_believed(github, size):
    data = packed(**GOOD | {"gate_json": "0" * (5 << 20)})
    lie = data.replace((5 << 20).to_bytes(4, "little"), size.to_bytes(4, "little"))
    assert lie != data
    server = github(lie)
    assert comment(server).returncode == 1
    assert server.written() == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_report_is_read_stored_and_deflated(method):
    assert script.read(packed(method, **GOOD)) == (12, report())


@pytest.mark.parametrize("name", ["number", "gate_json", "gate_md"])
@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_bomb_is_not_inflated(method, name):
    """64 MiB of zeros; what is not read may be as large as it is."""
    bomb = packed(method, **GOOD | {name: bytes(64 << 20)})
    assert len(bomb) < 4 << 20
    refused = method != zipfile.ZIP_DEFLATED or name != "gate_md"
    tracemalloc.start()
    try:
        with pytest.raises(script.Refused) if refused else contextlib.nullcontext():
            script.read(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 20 << 20


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_damaged_archive_is_refused_or_read(data):
    damaged = bytearray(packed(**GOOD))
    for _ in range(data.draw(st.integers(1, 5))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(script.Refused):
        _, found = script.read(bytes(damaged))
        assert found is None or script.compose(found, RUN)


# The report's shape


def parse(content):
    return script.parse(content if isinstance(content, str) else json.dumps(content))


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
        if key in ("proposed", "proposal_error"):  # a base from before it was there
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
        (("cells", 0, "before"), [-1e-9, True, "1", [1]]),
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
    done = comment(server)
    assert (done.returncode, done.stderr) == (1, "")
    assert re.fullmatch(r"refused: [ -~]+\n", done.stdout)
    assert server.written() == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(outcome.ORDER),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8) | st.sampled_from(list(COMPLETE)), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=500, deadline=None)
@given(JSON, st.sampled_from(list(places(COMPLETE))))
def test_whatever_stands_in_a_place_the_report_is_refused_or_shown(value, path):
    with contextlib.suppress(script.Refused):
        harmless(script.compose(parse(replaced(COMPLETE, path, value)), RUN))


# What a comment shows

NAME = re.compile(r"<code>((?:[A-Za-z0-9 (),'=-]|&#\d+;)*)</code>")
MARKDOWN = MarkdownIt("commonmark").enable("table")


def harmless(body):
    """Only our words, and names in code in which no sign is raw. Returns the names as a reader sees them."""
    assert body.startswith(f"{MARKER}\n### Speed: the gate ")
    assert FOREIGN not in body
    assert len(body) < 65_536
    names = NAME.findall(body)
    ours = NAME.sub("", body).removeprefix(MARKER).replace("### Speed", "", 1).replace(f"[the run]({RUN['html_url']})", "")
    assert set(ours) <= {*string.ascii_letters, *string.digits, *" \n:;,.|-'"}, ours
    for line in body.splitlines()[1:]:
        assert not line.startswith(("<", "/", "&"))
    html_tags = re.findall(r"<(\w+)", MARKDOWN.render(body))
    assert set(html_tags) <= {"h3", "p", "a", "table", "thead", "tbody", "tr", "th", "td", "code"}
    assert html_tags.count("a") == 1
    assert html_tags.count("tr") == len(names) + bool(names)
    return [html.unescape(name) for name in names]


def shown(*rows):
    return harmless(script.compose(parse(report(rows)), RUN))


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


@settings(max_examples=500, deadline=None)
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
@pytest.mark.parametrize("verdict", outcome.ORDER)
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
    assert comment(server).returncode == 0
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
    if status in outcome.MEANING and status != outcome.HEAD_BROKEN:
        assert script.STATUS[status] == outcome.MEANING[status]
    assert script.VERDICTS == outcome.ORDER


def test_nothing_measured():
    assert "\n\nno cells\n" in script.compose(parse(report([], exit_status=4)), RUN)


def test_what_the_head_proposes_is_counted():
    proposing = Outcome("b", "c", {}, {}, proposed=[Acceptance(FOREIGN, FOREIGN, "f")] * 2, proposal_error=FOREIGN)
    body = script.compose(parse(outcome.as_json(proposing)), RUN)
    assert "\n\nAccepted regressions that the head proposes, and that do not count here: 2.\n" in body
    assert "\n\nThe head's file of accepted regressions cannot be read.\n" in body
    harmless(body)


def test_a_gate_without_a_report(github):
    server = github(packed(gate_md=FOREIGN, number="12"))
    assert comment(server).returncode == 0
    assert server.comments[0]["body"] == f"{MARKER}\n### Speed: the gate wrote no report\n\n{STARTED}\n"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        *((None, ""), (0, "0.00 ns"), (4e-12, "0.00 ns"), (1.234e-7, "123 ns"), (1.25e-5, "12.5 us"), (0.0312, "31.2 ms")),
        *((1, "1.00 s"), (59.94, "59.9 s"), (1e9, "1000000000 s")),
    ],
)
def test_seconds(value, said):
    assert script.seconds(value) == said


@pytest.mark.parametrize(("method", "path"), [("GET", "pulls/12"), ("POST", "issues/12/comments")])
def test_an_api_that_fails_is_one_sentence(github, method, path):
    server = github()
    server.status[method, path] = 500
    done = comment(server)
    assert done.returncode == 1
    assert "GitHub's API did not answer as it should" in done.stdout
    assert done.stderr == ""
