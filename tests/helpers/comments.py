"""The script that posts the gate's report on a pull request, and a GitHub stand-in for it."""

import contextlib
import dataclasses
import html
import http.server
import importlib.util
import io
import json
import os
import re
import string
import threading
import urllib.parse
import zipfile
from pathlib import Path
from unittest import mock

from markdown_it import MarkdownIt

from convbench.gate import formats
from convbench.gate.report import Report, Row

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
    """The content of gate.json."""
    chosen = {"level": 0.95, "first_rounds": 4, "budget_seconds": None, "quick": False, "bench": [FOREIGN]}
    listed = [(FOREIGN, FOREIGN)]
    result = Report("b" * 40, "c" * 40, {"machine": FOREIGN}, chosen, list(found), listed, rounds=13, seconds=61.5)
    return formats.as_json(dataclasses.replace(result, environment=FOREIGN)) | more


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


GOOD = {"gate_md": f"# {FOREIGN}", "gate_json": json.dumps(report(), indent=1)}


def parse(content):
    return script.parse(content if isinstance(content, str) else json.dumps(content))


class Github:
    """As much of GitHub as the script needs, on this machine."""

    def __init__(self, data):
        self.data = data
        self.artifacts = [{"id": 3, "name": "gate", "expired": False, "size_in_bytes": len(data)}]
        self.zips = {}  # of artifacts that are not `data`, by id
        self.pulls = [self.pull()]
        self.comments = []
        self.asked = []
        self.status = {}  # of answers that fail, by method and path
        self.branch = RUN["head_branch"]
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
        fork = {"id": RUN["head_repository"]["id"], "full_name": "hubot/convbench"}
        head = {"sha": RUN["head_sha"], "ref": RUN["head_branch"], "repo": fork}
        return {"number": 12, "state": "open", "head": head, "base": {"repo": {"full_name": "octo-org/convbench"}}} | changes

    def answer(self, method, target, headers, content):
        address = urllib.parse.urlparse(target)
        path, query = address.path, dict(urllib.parse.parse_qsl(address.query))
        self.asked.append((method, path))
        if found := re.fullmatch(r"/elsewhere/(\d+)", path):
            assert "Authorization" not in headers
            return 200, {}, self.zips.get(int(found[1]), self.data)
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        path = path.removeprefix("/repos/octo-org/convbench/")
        if (method, path) in self.status:
            return self.status[method, path], {}, b"{}"
        if path == f"actions/runs/{RUN['id']}/artifacts":
            return self.json({"total_count": len(self.artifacts), "artifacts": self.artifacts})
        if found := re.fullmatch(r"actions/artifacts/(\d+)/zip", path):
            return 302, {"Location": f"{self.address}/elsewhere/{found[1]}"}, b""
        if path == "pulls":
            assert query == {"state": "open", "head": f"hubot:{self.branch}", "per_page": "100"}
            return self.json(self.pulls)
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


def environment(github, event):
    """The environment that the workflow sets."""
    return {
        "GITHUB_API_URL": github.address,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_REPOSITORY": "octo-org/convbench",
        "GITHUB_TOKEN": TOKEN,
    }


def comment(github, event=EVENT):
    """The script's exit status and what it printed, in this process."""
    printed = io.StringIO()
    with mock.patch.dict(os.environ, environment(github, event), clear=True), contextlib.redirect_stdout(printed):
        return script.main(), printed.getvalue()


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
