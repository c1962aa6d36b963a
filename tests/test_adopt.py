"""docs/adopt.md from an empty folder to a check: its commands are run, and their files are used as by GitHub."""

import os
import re
import subprocess
import sys

import pytest
import yaml
from actions import Run
from adopters import Adopter
from comments import report
from repositories import git
from workflows import ROOT, command, write

PAGE = (ROOT / "docs" / "adopt.md").read_text(encoding="utf-8")
SHELL, GATE, COMMENT = re.findall(r"```(?:sh|yaml)\n(.*?)```", PAGE, re.DOTALL)
COMMIT = "c" * 40
ASKED = f"run --spec git+https://github.com/octo-org/convbench@{COMMIT}#subdirectory=convbench convbench init"


def test_the_page_is_short_and_shows_the_files_that_are_written():
    assert len(PAGE.splitlines()) < 80
    for name, shown in (("gate", GATE), ("comment", COMMENT)):
        assert shown == (ROOT / "convbench" / "adopt" / f"{name}.yml").read_text(encoding="utf-8")


@pytest.mark.parametrize("word", ["bench", "budget", "paths", "all", "report", "fetch-depth: 0"])
def test_what_the_page_says_of_the_action_is_so(word):
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    assert f"`{word}`" in PAGE
    assert word in inputs or word == "fetch-depth: 0"


def test_the_pages_commands_lead_to_a_check(tmp_path):
    adopter = Adopter(tmp_path / "hub")
    adopter.result(1, report())
    git(adopter.top, "config", "receive.denyCurrentBranch", "updateInstead")
    here, commands = tmp_path / "clone", tmp_path / "commands"
    git(tmp_path, "clone", "--quiet", str(adopter.top), str(here))
    # In place of what pip fetches: the same command, told where it came from.
    init = f'exec {sys.executable} -m convbench init --action "octo-org/convbench@{COMMIT}"'
    command(commands / "pipx", f'[ "$*" = "{ASKED}" ] || exit 9\n{init}')
    command(commands / "gh", f'echo "$*" > {tmp_path}/gh')
    identity = {f"GIT_{role}_{what}": "nobody" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "PATH": f"{commands}:{os.environ['PATH']}"}
    script = SHELL.replace("OWNER", "octo-org").replace("COMMIT", COMMIT)
    done = subprocess.run(["bash", "-ec", script], cwd=here, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "gh").read_text() == "label create accept-regression\n"

    base = git(adopter.top, "rev-parse", "main")
    written = git(adopter.top, "show", "main:.github/workflows/gate.yml").replace("octo-org/convbench@", "OWNER/convbench@")
    adopter.branch("topic")
    head = adopter.change()
    run = Run(adopter.hub, adopter.hub.pull_request(base, head)).workflow(yaml.safe_load(written))
    assert run.jobs == {"gate": ("gate", "failure")}, run.log
    assert adopter.asked()[1:3] == [base, head]
    write(adopter.folder / "status", "0")
    labelled = adopter.hub.pull_request(base, head, action="labeled", label="accept-regression", labels=["accept-regression"])
    assert Run(adopter.hub, labelled).workflow(yaml.safe_load(written)).jobs == {"gate": ("gate", "success")}
