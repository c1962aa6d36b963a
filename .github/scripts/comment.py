"""Posts the gate's result on its pull request, as one comment that later runs update.

It runs with the right to comment, after a workflow that ran a stranger's code; the artifact of that run may hold anything. So
the comment is written here: its words are ours, its commit is that of GitHub's event, and of the artifact it has checked
numbers, known verdicts and the escaped names of cells, nothing else. Whatever the gate does not write is refused. The pull
request is the one that GitHub has for the measured branch and commit. The standard library is all it needs.
"""

from __future__ import annotations

import http.client
import io
import json
import os
import re
import string
import sys
import unicodedata
import urllib.error
import urllib.parse
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Isolated, Python does not look into the folder of the script.
sys.path.insert(0, str(Path(__file__).parent))
from github_api import MAX_ARTIFACT, Api, Refused

MARKER = "<!-- convbench gate -->"  # the marker by which the comment is found again
AUTHOR = "github-actions[bot]"  # other users can write the marker, too
ARTIFACT = re.compile(r"gate(-[a-z0-9]+)*")  # several jobs of a run may each write one
PAGES = 50  # pages of a hundred comments

MAX_REPORT = 4 << 20  # bytes of gate.json
MAX_MEMBERS = 10  # files in the artifact; the gate writes three
MAX_ARTIFACTS = 20
MAX_DIGITS = 20  # of a whole number
MAX_TEXT = 10_000  # characters
MAX_LIST = 10_000  # items
MAX_NUMBER = 1e9  # of seconds and ratios, too
MAX_NAME = 200  # characters of a cell's name that are shown
MAX_ROWS = 100  # cells that are shown
MAX_TABLE = 60_000  # characters; GitHub takes 65536 for all of a comment

VERDICTS = ("broken", "regressed", "not measured", "not reached", "unstable")
VERDICTS += ("ambiguous", "improved", "new", "gone", "same", "skipped", "untouched")
STATUS = {
    0: "passes",
    1: "fails: cells have regressed",
    2: "did not run: it was called incorrectly",
    3: "fails: the head does not build, or a benchmark that works on the base fails on it",
    4: "cannot pass: cells that should have been measured were not",
}
UNITS = {
    "seconds": ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
}
WORST_FIRST = (2, 3, 1, 4, 0)  # of several, as the gate has it
ENCRYPTED = 0x2041  # flags of a zip's members
PLAIN = set(string.ascii_letters + string.digits + " (),'=-")
BLANK = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs without a shape
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Nothing(Exception):
    """There is nothing to comment on, and nothing wrong."""


def post(run: dict, api: Api, repository: str) -> str:
    """Comment on the pull request of a finished run and say so. Raises Nothing or Refused, with the reason."""
    if run["event"] != "pull_request":
        raise Nothing("the run was not of a pull request")
    if run["conclusion"] not in ("success", "failure"):
        raise Nothing("the run was stopped")
    body = compose(together([read(data) for data in artifacts(run, api)]), run)
    number = pull_request(run, api, repository)
    existing = find(number, api)
    if existing is None:
        api.ask("POST", f"issues/{number}/comments", {"body": body})
        return f"commented on pull request {number}"
    api.ask("PATCH", f"issues/comments/{existing}", {"body": body})
    return f"updated the comment on pull request {number}"


def artifacts(run: dict, api: Api) -> list[bytes]:
    """The run's reports, of each job the newest: a run that was started again has those of every attempt."""
    listed = api.ask("GET", f"actions/runs/{int(run['id'])}/artifacts?per_page=100")["artifacts"]
    there = [each for each in listed if ARTIFACT.fullmatch(each["name"]) and not each["expired"]]
    if not there:
        raise Nothing("the run left no report: the gate was not requested, or did not finish")
    newest = {each["name"]: each for each in sorted(there, key=lambda each: each["id"])}
    if len(newest) > MAX_ARTIFACTS:
        raise Refused(f"the run has more than {MAX_ARTIFACTS} reports")
    if any(each["size_in_bytes"] > MAX_ARTIFACT for each in newest.values()):
        raise Refused(f"the artifact has more than {MAX_ARTIFACT} bytes")
    return [api.download(f"actions/artifacts/{newest[name]['id']}/zip") for name in sorted(newest)]


def read(data: bytes) -> dict | None:
    """The report in an artifact, None where the gate wrote none. Raises Refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            names = {member.filename for member in members}
            if not len(names) == len(members) <= MAX_MEMBERS:
                raise Refused("the artifact has more files than the gate writes, or two of one name")
            for member in members:
                # With other methods zipfile inflates everything before it counts.
                if member.flag_bits & ENCRYPTED or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Refused("the artifact has a file that is encrypted or not packed as the gate's are")
            report = content(archive, "gate.json", MAX_REPORT) if "gate.json" in names else None
    except Refused:
        raise
    except Exception as error:  # zipfile raises a dozen types for invalid archives
        raise Refused(f"the artifact cannot be read ({type(error).__name__})") from None
    return None if report is None else parse(report)


def content(archive: zipfile.ZipFile, name: str, limit: int) -> str:
    """One file of an archive. It is read up to the limit, since the size that an archive declares may be a lie."""
    with archive.open(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{name} has more than {limit} bytes")
    return data.decode()


def parse(written: str) -> dict:
    """The report. Raises Refused unless its shape and its types are those that the gate writes."""
    try:
        report = json.loads(written, object_pairs_hook=distinct, parse_int=whole, parse_constant=whole)
    except (ValueError, RecursionError) as error:
        raise Refused(f"gate.json is not JSON ({type(error).__name__})") from None
    REPORT(report, "gate.json")
    return report


def distinct(pairs: list[tuple[str, Any]]) -> dict:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused("gate.json has a key twice")
    return found


def whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise Refused(f"gate.json has a number of more than {MAX_DIGITS} digits")
    return int(digits)  # not of NaN and Infinity, which Python takes for JSON


# The shape of a report, as convbench.gate.formats.as_json writes it: each of these raises Refused for all other values.

Check = Callable[[Any, str], None]


def text(value: Any, where: str) -> None:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise Refused(f"{where} is not a text of at most {MAX_TEXT} characters")


def verdict(value: Any, where: str) -> None:
    if value not in VERDICTS:
        raise Refused(f"{where} is not a verdict")


def scalar(value: Any, where: str) -> None:
    if isinstance(value, str):
        text(value, where)
    elif value is not None and not isinstance(value, bool):
        NUMBER(value, where)


def setting(value: Any, where: str) -> None:
    many(scalar)(value if isinstance(value, list) else [value], where)


def between(low: float, high: float, kind: Any = (int, float)) -> Check:
    def check_number(value: Any, where: str) -> None:
        if isinstance(value, bool) or not isinstance(value, kind) or not low <= value <= high:  # a bool is an int to Python
            raise Refused(f"{where} is not a number from {low:g} to {high:g}")

    return check_number


def optional(inner: Check) -> Check:
    return lambda value, where: None if value is None else inner(value, where)


def many(inner: Check, low: int = 0, high: int = MAX_LIST) -> Check:
    def check_list(value: Any, where: str) -> None:
        if not isinstance(value, list) or not low <= len(value) <= high:
            raise Refused(f"{where} is not a list of {low} to {high} items")
        for place, item in enumerate(value):
            inner(item, f"{where}[{place}]")

    return check_list


def mapping(inner: Check) -> Check:
    def check_mapping(value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise Refused(f"{where} is not an object")
        many(text)(list(value), f"{where}'s keys")
        many(inner)(list(value.values()), f"{where}'s values")

    return check_mapping


def record(*optional_keys: tuple[str, Check], **checks: Check) -> Check:
    known = checks | dict(optional_keys)

    def check_record(value: Any, where: str) -> None:
        if not isinstance(value, dict) or not checks.keys() <= value.keys() <= known.keys():
            raise Refused(f"{where} does not have the keys that the gate writes")
        for key, item in value.items():
            known[key](item, f"{where}.{key}")

    return check_record


COUNT, POSITIVE, NUMBER = between(0, MAX_NUMBER, int), between(0, MAX_NUMBER), between(-MAX_NUMBER, MAX_NUMBER)
VALUE = between(-sys.float_info.max, sys.float_info.max, float)  # of a benchmark, in any unit
CELL = record(
    *(("unit", text), ("values", mapping(many(many(VALUE, 2, 2))))),
    *((name, optional(text)) for name in ("traceback", "touched", "measured_on")),
    **dict.fromkeys(("benchmark", "again"), text),
    **dict.fromkeys(("params", "notes"), many(text)),
    **dict.fromkeys(("reason", "accepted", "answer"), optional(text)),
    **dict.fromkeys(("before", "after"), optional(VALUE)),
    ratio=optional(POSITIVE),
    verdict=verdict,
    interval=optional(many(optional(POSITIVE), 2, 2)),
    rounds=COUNT,
    log_ratios=mapping(many(optional(NUMBER))),
)
REPORT = record(
    # An older gate writes none of these.
    *((name, many(text)) for name in ("other_environments", "differences", "ignored")),
    *((name, setting) for name in ("schema", "version", "shard", "partial", "identical")),
    ("smallest", mapping(NUMBER)),
    ("untouched", COUNT),
    *((name, optional(text)) for name in ("compared", "traceback", "proposal_error")),
    ("proposed", many(record(cell=text, reason=text))),
    **dict.fromkeys(("base", "head", "summary"), text),
    **dict.fromkeys(("environment", "error"), optional(text)),
    machine=mapping(text),
    settings=mapping(setting),
    exit_status=between(min(STATUS), max(STATUS), int),
    rounds=COUNT,
    seconds=POSITIVE,
    cells=many(CELL),
    not_timed=many(record(benchmark=text, reason=text)),
)


def together(reports: list[dict | None]) -> dict | None:
    """What the jobs of a run wrote, as one report; None where none of them wrote any."""
    written = [report for report in reports if report]
    if not written:
        return None
    return {
        "exit_status": min((report["exit_status"] for report in written), key=WORST_FIRST.index),
        "cells": [cell for report in written for cell in report["cells"]],
        "proposed": [one for report in written for one in report.get("proposed", ())],
        "proposal_error": any(report.get("proposal_error") for report in written),
        "missing": len(reports) - len(written),
    }


def compose(report: dict | None, run: dict) -> str:
    """The comment, in our words."""
    parts = [f"From [the run]({run['html_url']}) that measured {run['head_sha'][:8]}; its summary has the whole report."]
    if report is None:
        title = "wrote no report"
    else:
        status, cells = report["exit_status"], sorted(report["cells"], key=lambda cell: VERDICTS.index(cell["verdict"]))
        title = STATUS[status]
        if (status == 0) != (run["conclusion"] == "success"):
            parts.append(f"The run itself ended otherwise: {run['conclusion']}.")
        if report.get("missing"):
            parts.append(f"Jobs that wrote no report: {report['missing']}.")
        counts = Counter("accepted" if accepted(cell) else cell["verdict"] for cell in cells)
        parts.append(", ".join(f"{counts[name]} {name}" for name in ("accepted", *VERDICTS) if counts[name]) or "no cells")
        parts += table([cell for cell in cells if cell["verdict"] not in ("same", "skipped", "untouched")])
        if count := len(report.get("proposed", ())):
            parts.append(f"Accepted regressions that the head proposes, and that do not count here: {count}.")
        if report.get("proposal_error"):
            parts.append("The head's file of accepted regressions cannot be read.")
    return "\n\n".join([f"{MARKER}\n### Speed: the gate {title}", *parts]) + "\n"


def table(cells: list[dict]) -> list[str]:
    """The cells as a table, and how many did not fit."""
    lines, room = [], MAX_TABLE
    for cell in cells[:MAX_ROWS]:
        said = f"{cell['verdict']}, accepted" if accepted(cell) else cell["verdict"]
        ratio, *interval = (f"{x:.3f}" if x is not None else "" for x in (cell["ratio"], *(cell["interval"] or ())))
        fields = [said, code(cell), *(quantity(cell[key], cell) for key in ("before", "after")), ratio, " to ".join(interval)]
        lines.append(f"| {' | '.join(fields)} |")
        room -= len(lines[-1]) + 1
        if room < 0:
            lines.pop()
            break
    rest = [f"and {len(cells) - len(lines)} more; see the run"] if len(lines) < len(cells) else []
    head = ["| verdict | cell | before | after | ratio | interval |", "|---|---|---:|---:|---:|---|"]
    return ["\n".join(head + lines), *rest] if lines else rest


def accepted(cell: dict) -> bool:
    return cell["verdict"] == "regressed" and bool(cell["accepted"])


def quantity(value: float | None, cell: dict) -> str:
    """A time or memory with its unit, another value without: code() has what that says."""
    units = UNITS.get(cell.get("unit", "seconds"))
    if value is None or not units:
        return "" if value is None else f"{value:.4g}".replace("+", "")
    size, unit = next((one for one in units if abs(value) >= one[0]), units[-1])
    return f"{value / size:.{2 if abs(value) < 10 * size else 1 if abs(value) < 100 * size else 0}f} {unit}"


def code(cell: dict) -> str:
    """A cell's name, and a unit of the suite's own, in which no character means anything to GitHub: no link, no command."""
    name = cell["benchmark"] + (f"({', '.join(cell['params'])})" if cell["params"] else "")
    if (unit := cell.get("unit", "seconds")) not in UNITS:
        name += f" in {unit}"
    short = name if len(name) <= MAX_NAME else f"{name[:MAX_NAME]}…"
    return f"<code>{''.join(map(escaped, short))}</code>"


def escaped(character: str) -> str:
    """A character as itself if it is plain, else as its number; one that cannot be seen, or moves others, is replaced."""
    if character in PLAIN:
        return character
    if not character.isprintable() or character in BLANK or unicodedata.category(character).startswith("M"):
        character = REPLACEMENT
    # GitHub looks for mentions and e-mails in the text that numbers stand for.
    return f"&#{ord(character)};" + ("&#8203;" if character == "@" else "")


def pull_request(run: dict, api: Api, repository: str) -> int:
    """The open pull request whose head was measured. Raises Nothing where there is none, or which of several is not known.

    The event names a branch and a commit: its own list of pull requests is empty where they are of a fork.
    """
    fork = run["head_repository"]
    if not fork:
        raise Nothing("the fork of the pull request is gone")
    head = urllib.parse.quote(f"{fork['owner']['login']}:{run['head_branch']}", safe="")
    found = [
        (pull["number"], pull["head"]["sha"])
        for pull in api.ask("GET", f"pulls?state=open&head={head}&per_page=100")
        if pull["head"]["repo"] and (pull["head"]["repo"]["id"], pull["head"]["ref"]) == (fork["id"], run["head_branch"])
        if pull["state"] == "open" and pull["base"]["repo"]["full_name"] == repository
    ]
    if not found:
        raise Nothing("no open pull request here has the measured branch")
    measured = [int(number) for number, commit in found if commit == run["head_sha"]]
    if not measured:
        raise Nothing("the commit that was measured is not the head of its pull request")
    if len(measured) > 1:
        raise Nothing("several pull requests have this head, and the run does not say which of them it measured")
    return measured[0]


def find(number: int, api: Api) -> int | None:
    """The comment of an earlier run."""
    for page in range(1, PAGES + 1):
        comments = api.ask("GET", f"issues/{number}/comments?per_page=100&page={page}")
        for comment in comments:
            if comment["user"] and comment["user"]["login"] == AUTHOR and comment["body"].startswith(MARKER):
                return comment["id"]
        if len(comments) < 100:
            return None
    raise Refused(f"pull request {number} has too many comments to search")


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
