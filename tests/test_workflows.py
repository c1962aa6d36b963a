"""The workflows: their form, the rights they take, the shell in them, and the script that comments on pull requests."""

import contextlib
import http.server
import importlib.util
import io
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
import zipfile
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed, and the workflows cannot be read without it")

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
JOBS = {f"{file}.{name}": job for file, workflow in WORKFLOWS.items() for name, job in workflow["jobs"].items()}


def steps(job):
    return JOBS[job]["steps"]


def tool(name):
    """A command of this environment; the test is skipped where it is missing."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    return found or pytest.skip(f"{name} is not installed; it comes with the extra `test`")


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


# Their form


def test_there_are_four():
    assert set(WORKFLOWS) == {"tests", "gate", "comment", "weekly"}


def test_the_schema_of_workflows_holds():
    done = run(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES)
    assert done.returncode == 0, done.stdout + done.stderr


def test_zizmor_finds_nothing():
    """One finding is taken: comment.yml has to be a workflow_run, and says why that is safe."""
    command = [tool("zizmor"), "--offline", "--no-config", "--strict-collection", "--no-progress", "--persona", "pedantic"]
    done = run(*command, *FILES)
    assert done.returncode == 0, done.stdout + done.stderr
    ignored = [line for path in FILES for line in path.read_text(encoding="utf-8").splitlines() if "zizmor:" in line]
    assert len(ignored) == 1
    assert "workflow_run:" in ignored[0]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_with_their_version(path):
    used = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert used
    for line in used:
        assert re.fullmatch(r"[\w-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+(, .*)?", line), line


def test_an_action_has_one_version_everywhere():
    pins = {pin for path in FILES for pin in re.findall(r"uses: (\S+@\S+)", path.read_text(encoding="utf-8"))}
    assert len(pins) == len({pin.partition("@")[0] for pin in pins})


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_has_no_rights_of_its_own_and_a_concurrency_group(name):
    assert WORKFLOWS[name]["permissions"] == {}
    assert WORKFLOWS[name]["concurrency"]["group"]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_ends_by_itself_and_takes_the_least_rights(name):
    writing = {
        "comment.comment": {"pull-requests"},
        "weekly.dashboard": {"pages", "id-token"},
        "weekly.keep": {"contents"},
    }
    job = JOBS[name]
    assert job["timeout-minutes"] <= 360
    assert {right for right, access in job["permissions"].items() if access == "write"} == writing.get(name, set())


@pytest.mark.parametrize("name", JOBS)
def test_a_job_keeps_no_token_and_no_expression_reaches_a_shell(name):
    for step in JOBS[name]["steps"]:
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", JOBS)
def test_what_may_write_runs_nothing_of_a_pull_request(name):
    """A job that may write checks out the default branch, which is what checkout does unless told otherwise, or nothing."""
    if "write" not in JOBS[name]["permissions"].values():
        return
    assert "pull_request" not in WORKFLOWS[name.partition(".")[0]][True]  # YAML reads `on` as true
    assert not any("ref" in step.get("with", {}) for step in JOBS[name]["steps"])
    assert not any("make " in step.get("run", "") for step in JOBS[name]["steps"])


def test_the_tests_run_on_all_supported_pythons():
    assert JOBS["tests.tests"]["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert [step["run"] for step in steps("tests.tests") if "make" in step.get("run", "")] == [
        "make lint",
        "make smoke",
        "make test",
    ]


# The shell in them, run as GitHub runs it


def git(folder, *arguments):
    names = ["-c", "user.name=A", "-c", "user.email=a@b.c"]
    done = run("git", "-C", folder, *names, *arguments, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder, path):
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(path)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", path)
    return git(folder, "rev-parse", "HEAD")


def shell(job, name, folder, **environment):
    """Run the step of that name; what it printed, its outputs and its part of the summary."""
    (script,) = [step["run"] for step in steps(job) if step.get("name") == name]
    files = {key: folder / key.lower() for key in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        file.write_text("")
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "RUNNER_TEMP": str(folder), **environment}
    environment |= {key: str(file) for key, file in files.items()}
    done = run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, cwd=folder, env=environment)
    done.outputs = dict(line.split("=", 1) for line in files["GITHUB_OUTPUT"].read_text().splitlines())
    done.summary = files["GITHUB_STEP_SUMMARY"].read_text()
    return done


def command(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def history(tmp_path):
    """Main went on after the branch had left it, and touched impls/."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    left = commit(tmp_path, "README")
    git(tmp_path, "switch", "--quiet", "--create", "branch")
    head = commit(tmp_path, "docs/text")
    git(tmp_path, "switch", "--quiet", "main")
    return tmp_path, left, commit(tmp_path, "impls/theirs"), head


@pytest.mark.parametrize("labelled", ["true", "false"])
def test_without_the_label_what_main_did_to_impls_asks_for_no_gate(history, labelled):
    folder, left, main, head = history
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE=main, HEAD=head, LABELLED=labelled)
    assert done.returncode == 0, done.stderr
    assert done.outputs == {"base": left, "wanted": labelled}
    assert ("nothing to measure" in done.summary) == (labelled == "false")


def test_a_branch_that_touches_impls_asks_for_the_gate(history):
    folder, left, main, _ = history
    git(folder, "switch", "--quiet", "branch")
    head = commit(folder, "impls/ours")
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE=main, HEAD=head, LABELLED="false")
    assert done.outputs == {"base": left, "wanted": "true"}


def test_the_gate_is_not_passed_by_a_base_that_git_does_not_know(history):
    folder, *_, head = history
    done = shell("gate.gate", "Is the gate asked for?", folder, BASE="0" * 40, HEAD=head, LABELLED="false")
    assert done.returncode


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("accepted", ["true", "false"])
def test_the_gate_ends_as_convbench_does_and_its_report_is_kept(tmp_path, status, accepted):
    command(
        tmp_path / ".venv/bin/convbench",
        f'printf "%s\\n" "$@" > asked\necho "| cell |" > "$RUNNER_TEMP/gate/gate.md"\nexit {status}',
    )
    done = shell("gate.gate", "Gate", tmp_path, BASE="b" * 40, HEAD="a" * 40, NUMBER="7", ACCEPTED=accepted)
    assert done.returncode == status
    assert done.summary == "| cell |\n"
    assert (tmp_path / "gate/number").read_text() == "7\n"
    files = ["--json", f"{tmp_path}/gate/gate.json", "--markdown", f"{tmp_path}/gate/gate.md"]
    accepting = ["--accept", "*", "--reason", "label accept-regression"] if accepted == "true" else []
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[: 3 + len(accepting)] == ["gate", "b" * 40, "a" * 40, *accepting]
    assert asked[-4:] == files
    assert patterns(asked)


def patterns(command):
    """The expressions of --bench in a command."""
    return [command[place + 1] for place, word in enumerate(command) if word == "--bench"]


def test_the_gate_measures_cells_that_there_are(tmp_path):
    """An expression that no longer matches anything would leave its cells out in silence."""
    command(tmp_path / ".venv/bin/convbench", 'printf "%s\\n" "$@" > asked')
    shell("gate.gate", "Gate", tmp_path, BASE="b", HEAD="a", NUMBER="7", ACCEPTED="false")
    known = json.loads((ROOT / "results" / "benchmarks.json").read_text(encoding="utf-8"))
    cells = [
        f"{name}({', '.join(params)})"
        for name, benchmark in known.items()
        if name != "version"
        for params in itertools.product(*benchmark["params"])
    ]
    found = [
        [cell for cell in cells if re.search(pattern, cell)]
        for pattern in patterns((tmp_path / "asked").read_text().splitlines())
    ]
    assert found
    assert all(found)
    assert sum(map(len, found)) < 500


def test_a_gate_that_writes_no_report_is_reported_as_that(tmp_path):
    command(tmp_path / ".venv/bin/convbench", "exit 4")
    done = shell("gate.gate", "Gate", tmp_path, BASE="b" * 40, HEAD="a" * 40, NUMBER="7", ACCEPTED="false")
    assert done.returncode == 4
    assert "ended with status 4 and wrote no report" in done.summary == (tmp_path / "gate/gate.md").read_text()


@pytest.fixture
def remote(tmp_path):
    """A repository to push to, and a week's results."""
    folder = tmp_path / "remote" / "octo-org" / "convbench"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch", "main")
    work = tmp_path / "work"
    git(tmp_path, "clone", "--quiet", folder, work)
    git(work, "switch", "--quiet", "--create", "main")
    commit(work, "README")
    git(work, "push", "--quiet", "origin", "main")
    command(tmp_path / "bin/gh", "true")
    return folder


def keep(folder, remote, **results):
    """Run the job that pushes, in a fresh folder."""
    folder.mkdir()
    for machine, content in results.items():
        (folder / "new" / machine).mkdir(parents=True)
        (folder / "new" / machine / "results.json").write_text(content)
    there = {"GITHUB_SERVER_URL": f"file://{remote.parents[1]}", "GITHUB_REPOSITORY": "octo-org/convbench"}
    path = f"{remote.parents[2] / 'bin'}:{os.environ['PATH']}"
    return shell("weekly.keep", "Commit to the branch of results", folder, **there, PATH=path, GITHUB_SHA="5" * 40)


def test_results_go_to_a_branch_without_a_history_and_main_stays(remote, tmp_path):
    main = git(remote, "rev-parse", "main")
    assert keep(tmp_path / "first", remote, epyc="1").returncode == 0
    assert git(remote, "rev-list", "--count", "results") == "1"
    done = keep(tmp_path / "second", remote, epyc="2", xeon="3")
    assert done.returncode == 0, done.stderr
    assert git(remote, "log", "--format=%s", "results").splitlines() == ["Results of 55555555"] * 2
    assert git(remote, "ls-tree", "-r", "--name-only", "results").splitlines() == ["epyc/results.json", "xeon/results.json"]
    assert git(remote, "show", "results:epyc/results.json") == "2"
    assert "nothing new" in keep(tmp_path / "third", remote, epyc="2").stdout
    assert git(remote, "for-each-ref", "--format=%(refname:short)").splitlines() == ["main", "results"]
    assert git(remote, "rev-parse", "main") == main


def test_where_the_remote_cannot_be_asked_no_branch_is_begun(remote, tmp_path):
    shutil.rmtree(remote)
    assert keep(tmp_path / "first", remote, epyc="1").returncode not in (0, 2)


def test_results_of_earlier_weeks_do_not_replace_those_of_main(remote, tmp_path):
    keep(tmp_path / "first", remote, old="branch", both="branch")
    work = tmp_path / "work"
    git(work, "fetch", "--quiet", "origin")
    (work / "results/both").mkdir(parents=True)
    (work / "results/both/results.json").write_text("main")
    done = shell("weekly.measure", "Add the results of earlier weeks", work)
    assert done.returncode == 0, done.stderr
    assert {path.parent.name: path.read_text() for path in work.glob("results/*/*")} == {"old": "branch", "both": "main"}


# The script that comments

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
    return run(sys.executable, "-I", SCRIPT, env=environment)


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
