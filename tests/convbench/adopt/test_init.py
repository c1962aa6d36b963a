"""`convbench init`: the files that it writes, and the cases in which it writes none."""

import json
import subprocess
from unittest import mock

import pytest
import yaml
from command_line import inside, sentence
from repositories import commit, git
from workflows import ROOT, write

from convbench.adopt import workflows

PLACE = f"octo-org/convbench@{'a' * 40}"
TEMPLATES = {name: (ROOT / f"convbench/adopt/{name}.yml").read_text() for name in ("gate", "comment")}


@pytest.fixture
def suite(tmp_path):
    """A repository with a suite in perf/."""
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    configured(tmp_path)
    return tmp_path


def configured(folder, **settings):
    conf = {"version": 1, "project": "sample", "repo": "..", "pythons": ["3.11"], "environment_type": "virtualenv"} | settings
    write(folder / "perf" / "asv.conf.json", json.dumps(conf))
    commit(folder, "a suite")


def init(folder, *arguments):
    return inside(folder, "init", "--action", PLACE, *arguments)


def written(folder):
    return {name: (folder / ".github" / "workflows" / f"{name}.yml").read_text() for name in ("gate", "comment")}


def inputs(folder):
    *_, step = yaml.safe_load(written(folder)["gate"])["jobs"]["gate"]["steps"]
    assert step["uses"] == PLACE
    return step.get("with", {})


def test_the_files_are_those_of_the_documentation(suite):
    done = init(suite)
    assert done.returncode == 0, done.stderr
    files = written(suite)
    assert files["gate"].replace(PLACE, "OWNER/convbench@COMMIT").replace('["main"]', "[main]") == TEMPLATES["gate"]
    assert files["comment"] == TEMPLATES["comment"].replace("OWNER/convbench/comment@COMMIT", PLACE.replace("@", "/comment@"))
    assert f"wrote {suite}/.github/workflows/gate.yml\n" in done.stdout
    assert "What to do next:" in done.stdout


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        (
            {"environment_type": "rattler", "pythons": ["3.12", "3.13"]},
            {"environment": "virtualenv", "python-version": "3.12"},
        ),
        ({"pythons": ["3.9", "3.13"]}, {"environment": "virtualenv:3.13", "python-version": "3.13"}),
        ({"pythons": ["pypy3", "3.8"]}, {"environment": "virtualenv:3.11"}),
        ({"environment_type": "existing"}, {"environment": "virtualenv"}),
    ],
)
def test_what_the_configuration_asks_for_is_given(suite, settings, given):
    configured(suite, **settings)
    assert init(suite).returncode == 0
    assert inputs(suite) == given


def test_one_of_several_configurations_is_named(suite):
    write(suite / "other" / "asv.conf.json", (suite / "perf" / "asv.conf.json").read_text())
    commit(suite, "another")
    assert "several asv configurations" in sentence(init(suite))
    assert not (suite / ".github").exists()
    assert init(suite, "--config", "other/asv.conf.json").returncode == 0
    assert inputs(suite) == {"config": "other/asv.conf.json"}


@pytest.mark.parametrize(
    ("configured_branch", "remote", "branch"), [("develop", None, "develop"), ("develop", "a:b", "a:b"), (None, "x", "x")]
)
def test_the_default_branch_is_the_remotes(suite, configured_branch, remote, branch):
    branch = branch.replace(":", "-")
    configured(suite, branches=[configured_branch])
    if remote:
        git(suite, "symbolic-ref", "refs/remotes/origin/HEAD", f"refs/remotes/origin/{branch}")
    init(suite)
    assert yaml.safe_load(written(suite)["gate"])[True]["push"]["branches"] == [branch]


@pytest.mark.parametrize("name", ["gate", "comment"])
def test_nothing_is_overwritten(suite, name):
    write(suite / ".github" / "workflows" / f"{name}.yml", "mine")
    assert f".github/workflows/{name}.yml exists" in sentence(init(suite))
    assert [path.read_text() for path in (suite / ".github" / "workflows").iterdir()] == ["mine"]


def test_without_a_suite_asv_makes_one(tmp_path):
    git(tmp_path, "init", "--quiet")
    said = sentence(init(tmp_path))
    assert "no asv.conf.json in" in said
    assert said.endswith("`asv quickstart`")


def test_a_suite_of_another_repository_is_refused(suite, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    subprocess.run(["git", "init", "--quiet", other], check=True)
    configured(suite, repo=str(other))
    assert f"measures {other}, another repository" in sentence(init(suite, "--config", "perf/asv.conf.json"))


@pytest.mark.parametrize("place", ["convbench", "octo-org/convbench", "a/b@c\n  evil: true", "a b/c@d"])
def test_what_is_no_place_of_an_action_is_refused(suite, place):
    assert "is not the location of an action" in sentence(inside(suite, "init", f"--action={place}"))


def installed(text):
    distribution = mock.Mock(read_text=lambda _: text)
    return mock.patch.object(workflows.importlib.metadata, "distribution", return_value=distribution)


GIT = {"vcs": "git", "commit_id": "b" * 40}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (json.dumps({"url": "https://github.com/octo-org/convbench.git", "vcs_info": GIT}), f"octo-org/convbench@{'b' * 40}"),
        (json.dumps({"url": "https://github.com/octo-org/convbench", "vcs_info": GIT}), f"octo-org/convbench@{'b' * 40}"),
        (json.dumps({"url": "https://example.com/octo-org/convbench", "vcs_info": GIT}), None),
        (json.dumps({"url": "file:///home/me/convbench", "dir_info": {}}), None),
        ("[", None),
        (None, None),
    ],
)
def test_the_action_is_the_commit_that_pip_fetched(suite, text, place):
    with installed(text):
        done = inside(suite, "init")
    if place is None:
        assert "convbench was not installed from GitHub" in sentence(done)
        assert done.returncode == 2
    else:
        assert f"uses: {place}\n" in written(suite)["gate"]
