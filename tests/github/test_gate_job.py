"""The gate's job: when it is asked for, which gate is installed, and what it ends with."""

import itertools
import json
import os
import re

import pytest
from workflows import ROOT, command, commit, git, shell


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


def test_the_gate_that_is_installed_is_the_bases(history):
    folder, _, main, head = history
    git(folder, "switch", "--quiet", "branch")
    command(folder / "bin/make", 'printf "%s\\n" "$PWD" "$@" > "$RUNNER_TEMP/made"')
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    done = shell("gate.gate", "Install", folder, BASE=main, PATH=path)
    assert done.returncode == 0, done.stderr
    assert (folder / "made").read_text().splitlines() == [str(folder), "-C", str(folder / "tool"), ".venv/installed"]
    assert git(folder / "tool", "rev-parse", "HEAD") == main
    assert git(folder, "rev-parse", "HEAD") == head


def gate(folder, script, accepted="false", labelled="false"):
    """Run the gate's step with a convbench that is a script: what it was called with stands in `asked`."""
    command(folder / "tool/.venv/bin/convbench", f'printf "%s\\n" "$@" > asked\n{script}')
    asked = {"BASE": "b" * 40, "HEAD": "a" * 40, "NUMBER": "7", "ACCEPTED": accepted, "LABELLED": labelled}
    return shell("gate.gate", "Gate", folder, **asked)


REPORTING = 'echo "| cell |" > "$RUNNER_TEMP/gate/gate.md"'


@pytest.mark.parametrize("status", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("accepted", ["true", "false"])
def test_the_gate_ends_as_convbench_does_and_its_report_is_kept(tmp_path, status, accepted):
    done = gate(tmp_path, f"{REPORTING}\nexit {status}", accepted, labelled=accepted)
    assert done.returncode == status
    assert done.summary == "| cell |\n"
    assert (tmp_path / "gate/number").read_text() == "7\n"
    files = ["--json", f"{tmp_path}/gate/gate.json", "--markdown", f"{tmp_path}/gate/gate.md"]
    accepting = ["--accept", "*", "--reason", "label accept-regression"] if accepted == "true" else []
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[: 3 + len(accepting)] == ["gate", "b" * 40, "a" * 40, *accepting]
    assert asked[asked.index("--accept-file") + 1] == f"{tmp_path}/tool/convbench-accept.toml"
    assert asked[-4:] == files
    assert patterns(asked)


def test_a_label_of_an_earlier_commit_accepts_nothing_and_that_is_said(tmp_path):
    done = gate(tmp_path, f"{REPORTING}\nexit 1", accepted="false", labelled="true")
    assert done.returncode == 1
    assert "--accept" not in (tmp_path / "asked").read_text().splitlines()
    assert done.summary.startswith("| cell |\n")
    assert "`accept-regression` does not count for this commit" in done.summary


def patterns(command):
    """The expressions of --bench in a command."""
    return [command[place + 1] for place, word in enumerate(command) if word == "--bench"]


def test_the_gate_measures_cells_that_there_are(tmp_path):
    """An expression that no longer matches anything would leave its cells out in silence."""
    gate(tmp_path, REPORTING)
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
    done = gate(tmp_path, "exit 4")
    assert done.returncode == 4
    assert "ended with status 4 and wrote no report" in done.summary == (tmp_path / "gate/gate.md").read_text()
