"""Posts the gate's report on its pull request, as one comment that later runs update.

It runs with the right to comment, after a workflow that ran a stranger's code. The artifact of that run is what the stranger
wrote: nothing of it is executed or unpacked, its size is limited, and the pull request it names has to be the one whose head
was measured, by the event that GitHub sent. The standard library is all it needs.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

MARKER = "<!-- convbench gate -->"  # the comment is found by it again
AUTHOR = "github-actions[bot]"  # whose comments are ours; anybody can write the marker
ARTIFACT = "gate"
LARGEST = 4 << 20  # bytes of the artifact
LONGEST = 1 << 20  # bytes of the report in it; a job's summary takes no more either
COMMENT = 65536  # characters that GitHub takes
ROOM = 64000  # of these for the report
PAGES = 50  # of a hundred comments


class Refused(Exception):
    """The artifact is not what the gate writes."""


class Nothing(Exception):
    """There is nothing to comment on, and nothing wrong."""


class Stay(urllib.request.HTTPRedirectHandler):
    """Follow no redirect: the token would travel along."""

    def redirect_request(self, *_):
        return None


class Api:
    """The part of GitHub's API that is under one repository."""

    def __init__(self, address: str, repository: str, token: str):
        self.root = f"{address}/repos/{repository}"
        self.headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
        self.opener = urllib.request.build_opener(Stay)

    def open(self, method: str, path: str, content: object = None):
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.root}/{path}", data, self.headers, method=method)
        return self.opener.open(request, timeout=30)

    def ask(self, method: str, path: str, content: object = None):
        with self.open(method, path, content) as answer:
            return json.load(answer)

    def download(self, path: str) -> bytes:
        """A file that the API redirects to; it lies elsewhere, where no token is sent. Raises Refused where it is large."""
        try:
            answer = self.open("GET", path)
        except urllib.error.HTTPError as error:
            if error.code not in (301, 302, 303, 307, 308):
                raise
            answer = urllib.request.urlopen(error.headers["Location"], timeout=30)
        with answer:
            data = answer.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise Refused(f"the artifact has more than {LARGEST} bytes")
        return data


def post(run: dict, api: Api, repository: str) -> str:
    """Comment on the pull request of a finished run and say so. Raises Nothing or Refused, with the reason."""
    if run["event"] != "pull_request":
        raise Nothing("the run was not of a pull request")
    number, report = read(artifact(run, api))
    check(number, run, api, repository)
    body = compose(report, run)
    existing = find(number, api)
    if existing is None:
        api.ask("POST", f"issues/{number}/comments", {"body": body})
        return f"commented on pull request {number}"
    api.ask("PATCH", f"issues/comments/{existing}", {"body": body})
    return f"updated the comment on pull request {number}"


def artifact(run: dict, api: Api) -> bytes:
    """The run's newest report: a run that was started again has one of every attempt."""
    listed = api.ask("GET", f"actions/runs/{int(run['id'])}/artifacts?name={ARTIFACT}&per_page=100")["artifacts"]
    there = [each for each in listed if each["name"] == ARTIFACT and not each["expired"]]
    if not there:
        raise Nothing("the run left no report: the gate was not asked for, or did not get that far")
    newest = max(there, key=lambda each: each["id"])
    if newest["size_in_bytes"] > LARGEST:
        raise Refused(f"the artifact has more than {LARGEST} bytes")
    return api.download(f"actions/artifacts/{newest['id']}/zip")


def read(data: bytes) -> tuple[int, str]:
    """The pull request's number and the report. Raises Refused for everything else that a file can be."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            number, report = member(archive, "number", 20), member(archive, "gate.md", LONGEST)
    except Refused:
        raise
    except Exception as error:  # zipfile has a dozen, one for each way in which a file is no archive
        raise Refused(f"the artifact cannot be read ({type(error).__name__})") from None
    if not re.fullmatch(r"[1-9][0-9]{0,8}\n?", number):
        raise Refused("the artifact names no pull request")
    if not report.strip():
        raise Refused("the report is empty")
    return int(number), report


def member(archive: zipfile.ZipFile, name: str, limit: int) -> str:
    """One file of an archive. It is read up to the limit, since the size that an archive declares may be a lie."""
    with archive.open(name) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise Refused(f"{name} has more than {limit} bytes")
    return content.decode()


def check(number: int, run: dict, api: Api, repository: str) -> None:
    """Raise Nothing unless the pull request is open, of this repository, and its head is the commit that was measured."""
    try:
        pull = api.ask("GET", f"pulls/{number}")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        raise Nothing(f"there is no pull request {number}") from None
    head, base = pull["head"], pull["base"]
    if pull["state"] != "open" or base["repo"]["full_name"] != repository:
        raise Nothing(f"pull request {number} is not open here")
    if not head["repo"] or not run["head_repository"]:
        raise Nothing(f"the fork of pull request {number} is gone")
    if (head["sha"], head["repo"]["id"]) != (run["head_sha"], run["head_repository"]["id"]):
        raise Nothing(f"the commit that was measured is not the head of pull request {number}")


def compose(report: str, run: dict) -> str:
    """The comment, our line above the stranger's. It speaks in the bot's name, so it calls nobody and hides nothing."""
    quiet = re.sub(r"@|&(?:#0*64|#x0*40|commat);?", "@\u200b", report.strip(), flags=re.IGNORECASE).replace("<!--", "&lt;!--")
    source = f"From [the run]({run['html_url']}) that measured {run['head_sha'][:8]}"
    if len(quiet) > ROOM:
        quiet, source = shorten(quiet), f"{source}, whose summary has the rest, too"
    body = f"{MARKER}\n<sub>{source}</sub>\n\n{quiet}\n"
    if len(body) > COMMENT:
        raise Refused("the report cannot be made short enough for a comment")
    return body


def shorten(report: str) -> str:
    """As many lines as a comment takes, with the code and the folds closed that are open where it ends."""
    start = report[:ROOM]
    start = start.rpartition("\n")[0] or start
    fence = "\n```" if start.count("```") % 2 else ""
    return start + fence + "\n\n</details>" * (start.count("<details>") - start.count("</details>"))


def find(number: int, api: Api) -> int | None:
    """The comment of an earlier run."""
    for page in range(1, PAGES + 1):
        comments = api.ask("GET", f"issues/{number}/comments?per_page=100&page={page}")
        for comment in comments:
            if comment["user"] and comment["user"]["login"] == AUTHOR and comment["body"].startswith(MARKER):
                return comment["id"]
        if len(comments) < 100:
            return None
    raise Refused(f"pull request {number} has too many comments to look through")


def main() -> int:
    """The exit status: 0 also where there is nothing to do."""
    repository = os.environ["GITHUB_REPOSITORY"]
    api = Api(os.environ["GITHUB_API_URL"], repository, os.environ["GITHUB_TOKEN"])
    run = json.loads(Path(os.environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))["workflow_run"]
    try:
        print(post(run, api, repository))
    except Nothing as reason:
        print(f"no comment: {reason}")
    except Refused as reason:
        print(f"refused: {reason}")
        return 1
    except (OSError, http.client.HTTPException) as error:
        print(f"GitHub's API did not answer as it should: {error!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
