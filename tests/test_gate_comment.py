"""The script that comments what the gate found on a pull request, and a GitHub of our own for it to speak to."""

import contextlib
import http.server
import importlib.util
import io
import json
import re
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / ".github" / "scripts" / "comment.py"
EVENT = ROOT / "tests" / "golden" / "workflow_run.json"
RUN = json.loads(EVENT.read_text(encoding="utf-8"))["workflow_run"]
TOKEN = "the token"
REPORT = "## The gate\n\n| cell | change |\n|---|---|\n| `ImageSize('cpu.fft', '7x7')` | 1.08x |\n"
MARKER = "<!-- convbench gate -->"
BOT = "github-actions[bot]"

spec = importlib.util.spec_from_file_location("comment", SCRIPT)
assert spec is not None
assert spec.loader is not None
script = importlib.util.module_from_spec(spec)
spec.loader.exec_module(script)


def packed(**files):
    """A zip as GitHub makes one of an artifact. `gate_md` stands for gate.md."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("_", "."), content)
    return stream.getvalue()


GOOD = {"gate_md": REPORT, "gate_json": "{}", "number": "12\n"}


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
    source = f"From [the run]({RUN['html_url']}) that measured 8f2b1c4d"
    assert made["body"] == f"{MARKER}\n<sub>{source}</sub>\n\n{REPORT}"
    imported = re.findall(r"^(?:import|from) (\w+)", SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(imported) <= sys.stdlib_module_names


def test_the_next_run_updates_that_comment(github):
    server = github()
    comment(server)
    server.data = packed(**GOOD | {"gate_md": "all is well\n"})
    done = comment(server)
    assert (done.returncode, done.stdout) == (0, "updated the comment on pull request 12\n")
    (made,) = server.comments
    assert made["body"].endswith("\n\nall is well\n")


def test_the_comment_is_found_among_many_and_a_forged_one_is_let_be(github):
    server = github()
    forged = remark(1, f"{MARKER}\nmine", "hubot")
    quoting = remark(2, f"> {MARKER}", BOT)
    gone = {"id": 3, "body": "of an account that is deleted", "user": None}
    others = [remark(number, "hello", "octocat") for number in range(4, 150)]
    server.comments = [forged, quoting, gone, *others, remark(150, f"{MARKER}\nold", BOT)]
    assert comment(server).returncode == 0
    assert server.written() == [("PATCH", "/repos/octo-org/convbench/issues/comments/150")]
    assert REPORT in server.comments[-1]["body"]
    assert (forged["body"], quoting["body"]) == (f"{MARKER}\nmine", f"> {MARKER}")


def test_the_newest_attempt_of_a_run_counts(github):
    server = github()
    old, gone = ({"id": number, "name": "gate", "expired": number == 9, "size_in_bytes": 1} for number in (2, 9))
    server.artifacts = [old, *server.artifacts, gone]
    assert comment(server).returncode == 0
    assert REPORT in server.comments[0]["body"]


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


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cannot be read"),
        (b"<html>no zip</html>", "cannot be read"),
        (packed(**GOOD)[:-30], "cannot be read"),
        (packed(gate_md=REPORT), "cannot be read"),
        (packed(number="12"), "cannot be read"),
        (packed(**GOOD | {"gate_md": b"\xff\xfe"}), "cannot be read"),
        (packed(**GOOD | {"number": "12; true"}), "names no pull request"),
        (packed(**GOOD | {"number": "-12"}), "names no pull request"),
        (packed(**GOOD | {"number": "12/comments"}), "names no pull request"),
        (packed(**GOOD | {"number": "١٢"}), "names no pull request"),
        (packed(**GOOD | {"number": "1" * 1000}), "number has more than 20 bytes"),
        (packed(**GOOD | {"gate_md": " \n"}), "the report is empty"),
        (packed(**GOOD | {"gate_md": "<details>" * 10_000}), "cannot be made short enough"),
        (packed(**GOOD | {"gate_md": "0" * (50 << 20)}), "gate.md has more than 1048576 bytes"),  # 50 kB as a zip
        (bytes(script.LARGEST + 1), "the artifact has more than 4194304 bytes"),
    ],
    ids=range(15),
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
    too_large = len(data) > script.LARGEST and declared == "truly"
    assert (("GET", "/elsewhere") in server.asked) != too_large  # not even fetched


def test_a_size_that_the_archive_lies_about_is_not_believed(github):
    data = packed(**GOOD | {"gate_md": "0" * (2 << 20)})
    lie = data.replace((2 << 20).to_bytes(4, "little"), (100).to_bytes(4, "little"))
    assert lie != data
    server = github(lie)
    assert comment(server).returncode == 1
    assert server.written() == []


@pytest.mark.parametrize("at", ["@", "&#64;", "&#0064;", "&#x40;", "&#X40", "&commat;"])
def test_a_report_calls_nobody_and_hides_nothing(github, at):
    server = github(gate_md=f"Thanks to {at}octocat\n{MARKER}\n<!-- hidden -->\n")
    assert comment(server).returncode == 0
    body = server.comments[0]["body"]
    assert "Thanks to @\u200boctocat" in body
    assert body.count("<!--") == 1


def test_a_long_report_is_cut_at_a_line_and_what_is_open_is_closed(github):
    rows = "| `a cell` | 1.00x |\n" * 4000
    fold = f"<details><summary>4000 more cells</summary>\n\n| cell | change |\n|---|---|\n{rows}\n</details>\n"
    server = github(gate_md=REPORT + fold)
    assert comment(server).returncode == 0
    body = server.comments[0]["body"]
    assert 63_000 < len(body) < 65_536
    assert "whose summary has the rest, too</sub>" in body
    assert body.endswith("| `a cell` | 1.00x |\n\n</details>\n")
    assert script.shorten("```\n" + "x\n" * 40_000).endswith("x\n```")


@pytest.mark.parametrize(("method", "path"), [("GET", "pulls/12"), ("POST", "issues/12/comments")])
def test_an_api_that_fails_is_one_sentence(github, method, path):
    server = github()
    server.status[method, path] = 500
    done = comment(server)
    assert done.returncode == 1
    assert "GitHub's API did not answer as it should" in done.stdout
    assert done.stderr == ""
