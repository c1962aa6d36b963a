"""The settings of a bare repository inside a clone are ignored, and nothing that a configuration names is run."""

import json
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from gate_projects import Sample

from convbench.asv import commits, git, project
from convbench.cli.main import main

COMMANDS = [
    ("table",),
    ("history",),
    ("compare", "HEAD", "HEAD"),
    ("export", "out.csv"),
    ("dashboard", "--no-serve"),
    ("gate",),
]


def shell(folder, *command, **options):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, **options)
    return done.stdout.strip()


def obey(folder, proof):
    """Configure a repository to run a program at every place where git can, and sign its first commit."""
    program = folder / "evil"
    program.write_text(f"#!/bin/sh\necho ran >> {proof}\n")
    program.chmod(0o755)
    with (folder / "config").open("a") as file:
        file.write(
            f'[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n[core]\n\tfsmonitor = "{program}"\n'
            f'\tsshCommand = {program}\n[remote "origin"]\n\turl = ssh://nobody@example.invalid/x.git\n'
        )


def signed(bare):
    tree = shell(bare, "git", "--git-dir=.", "mktree", input="")
    text = f"tree {tree}\nauthor a <a@b> 1700000000 +0000\ncommitter a <a@b> 1700000000 +0000\n"
    text += "gpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\nfirst\n"
    commit = shell(bare, "git", "--git-dir=.", "hash-object", "-t", "commit", "-w", "--stdin", input=text)
    shell(bare, "git", "--git-dir=.", "update-ref", "refs/heads/main", commit)
    return commit


@pytest.fixture
def brought(tmp_path):
    """A clone that contains a bare repository with a suite; its programs would write a file as proof."""
    (up := tmp_path / "up").mkdir()
    shell(up, "git", "init", "-q", "-b", "main")
    suite = up / "suite"
    suite.mkdir()
    shell(suite, "git", "init", "-q", "--bare", "-b", "main", ".")
    obey(suite, tmp_path / "proof")
    commit = signed(suite)
    for folder in ("refs/heads", "refs/tags", "objects/info"):
        (suite / folder / ".keep").touch()
    conf = {"version": 1, "project": "p", "repo": ".", "branches": ["main"], "results_dir": "results", "html_dir": "html"}
    (suite / "asv.conf.json").write_text(json.dumps(conf))
    machine = suite / "results" / "m"
    machine.mkdir(parents=True)
    (machine.parent / "benchmarks.json").write_text('{"version": 2}')
    whole = {"commit_hash": commit, "env_name": "env", "date": 1, "params": {"machine": "m"}, "result_columns": []}
    (machine / f"{commit[:8]}-env.json").write_text(json.dumps({**whole, "results": {}, "version": 2}))
    here = {**os.environ, "GIT_DIR": str(up / ".git"), "GIT_WORK_TREE": str(up)}
    shell(up, "git", "add", "--force", "suite", env=here)
    shell(up, "git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "suite", env=here)
    shell(tmp_path, "git", "clone", "-q", up, "clone")
    return tmp_path / "clone" / "suite", tmp_path / "proof"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("repo", [".", "../suite", "https://example.invalid/x.git"])
def test_a_bare_repository_in_a_work_tree_is_refused(brought, monkeypatch, command, repo):
    folder, proof = brought
    conf = json.loads((folder / "asv.conf.json").read_text())
    (folder / "asv.conf.json").write_text(json.dumps({**conf, "repo": repo}))
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(main, command)
    assert done.exit_code
    assert done.stderr.count("\n") == 1
    assert "bare repository" in done.stderr
    assert not proof.exists()


def test_where_asv_would_keep_its_mirror_no_repository_may_lie(brought):
    folder, proof = brought
    conf = {"version": 1, "project": "suite", "repo": "https://example.invalid/x.git", "branches": ["main"]}
    (folder.parent / "asv.conf.json").write_text(json.dumps(conf))
    with pytest.raises(click.ClickException, match="a bare repository in the work tree"):
        project.load(folder.parent / "asv.conf.json")
    assert not proof.exists()


def test_a_users_own_repository_runs_nothing_while_it_is_read(tmp_path, monkeypatch):
    made = Sample(tmp_path / "project")
    made.commit({"n": "0"}, "first")
    obey(made.folder / ".git", tmp_path / "proof")
    monkeypatch.chdir(made.folder)
    here = project.load(made.folder / "asv.conf.json")
    assert here.git("log", "--format=%s", "HEAD") == "first"
    assert here.git("status", "--porcelain", "-uno") == ""
    assert commits.resolve(here, "ALL", set) == [here.commit()]
    asked = (
        "import subprocess; print(subprocess.run(['git', 'status', '--porcelain', '-uno'], capture_output=True).returncode)"
    )
    assert shell(made.folder, sys.executable, "-c", asked, env=git.environment(os.environ)) == "0"
    assert not (tmp_path / "proof").exists()


@pytest.mark.parametrize("count", ["0", "2"])
def test_asv_is_told_after_what_it_is_told_already(count):
    known = {"GIT_CONFIG_COUNT": count} | {
        f"GIT_CONFIG_{kind}_{i}": f"{kind}.{i}" for i in range(2) for kind in ("KEY", "VALUE")
    }
    found = git.environment(known)
    assert int(found["GIT_CONFIG_COUNT"]) == int(count) + 2
    names = [found[f"GIT_CONFIG_KEY_{number}"] for number in range(int(found["GIT_CONFIG_COUNT"]))]
    assert names[int(count) :] == ["log.showSignature", "core.fsmonitor"]


def test_a_mirror_of_asv_s_is_read(tmp_path, monkeypatch):
    """A bare clone that asv made itself, in the work tree of the suite, for a repository that lies elsewhere."""
    made = Sample(tmp_path / "there")
    hashes = [made.commit({"n": str(i)}, f"commit {i}") for i in range(2)]
    (suite := tmp_path / "suite").mkdir()
    shell(suite, "git", "init", "-q", "-b", "main")
    conf = {"version": 1, "project": "sample", "repo": f"file://{made.folder}", "branches": ["main"]}
    (suite / "asv.conf.json").write_text(json.dumps(conf))
    monkeypatch.chdir(suite)
    for _ in range(2):  # cloned, then found
        here = project.load(suite / "asv.conf.json")
        assert commits.resolve(here, "main", set) == hashes[::-1]
        assert (suite / "sample" / "objects").is_dir()
        assert commits.resolve(here, "main~1..main", set) == hashes[1:]


def test_a_bare_repository_outside_of_a_work_tree_is_read(tmp_path, monkeypatch):
    made = Sample(tmp_path / "there")
    commit = made.commit({"n": "0"}, "first")
    shell(tmp_path, "git", "clone", "-q", "--bare", made.folder, "bare.git")
    (suite := tmp_path / "suite").mkdir()
    (suite / "asv.conf.json").write_text(
        json.dumps({"version": 1, "project": "p", "repo": "../bare.git", "branches": ["main"]})
    )
    monkeypatch.chdir(suite)
    assert commits.resolve(project.load(suite / "asv.conf.json"), "main", set) == [commit]


def test_a_hooks_variables_name_no_repository(tmp_path, monkeypatch):
    """git exports them to hooks, in a linked work tree GIT_DIR, too."""
    made, other = (Sample(tmp_path / name) for name in ("project", "other"))
    commit = made.commit({"n": "0"}, "first")
    other.commit({"n": "1"}, "second")
    monkeypatch.chdir(made.folder)
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    here = project.load(made.folder / "asv.conf.json")
    assert here.commit() == commit
    assert commits.resolve(here, "ALL", set) == [commit]
    assert shell(made.folder, "git", "rev-parse", "HEAD", env=git.environment(os.environ)) == commit


def test_gits_list_of_them_is_complete():
    named = set(shell(".", "git", "rev-parse", "--local-env-vars").split())
    assert named - git.LOCAL <= {"GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"}
