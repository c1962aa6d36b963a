"""The project in the clones of machines, which are sent what they lack and no more."""

import dataclasses

import click
import pytest
from gate_projects import Sample
from repositories import git

from convbench.asv import project
from convbench.cluster import source


@pytest.fixture
def sample(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = Sample(tmp_path / "project")
    made.hashes = [made.commit({"sample/__init__.py": f"x = {i}"}) for i in range(3)]
    return made


def send(folder, commits):
    """Send commits to the clone of this machine, as to another one; the bytes and the source."""
    here = project.find(folder / "asv.conf.json")
    found = source.of(here)
    packed = source.packs(here, found, commits, source.known(found))
    source.receive(found, packed, commits, source.shallow(here))
    return sum(map(len, packed)), found


def test_a_clone_gets_what_it_lacks_and_builds_of_it_stay(sample):
    first, found = send(sample.folder, sample.hashes[:1])
    there = source.checkout(found)
    assert there.root == found.clone
    assert there.commit() == sample.hashes[-1]
    assert set(source.known(found)) == {sample.hashes[0], sample.hashes[-1]}
    (found.clone / ".convbench").mkdir()
    sample.hashes.append(sample.commit({"sample/__init__.py": "x = 9"}))
    second, found = send(sample.folder, sample.hashes)
    assert 0 < second < first
    assert send(sample.folder, sample.hashes)[0] == 0
    assert source.checkout(found).commit() == sample.hashes[-1]
    assert (found.clone / "sample" / "__init__.py").read_text() == "x = 9"
    assert (found.clone / ".convbench").is_dir()


def test_a_commit_of_no_branch_and_a_shallow_history_are_sent(sample, tmp_path):
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{sample.folder}", "shallow")
    (tmp_path / "shallow" / "new").write_text("")
    here = project.find(tmp_path / "shallow" / "asv.conf.json")
    loose = here.snapshot()
    _, found = send(tmp_path / "shallow", [loose])
    there = source.checkout(found)
    assert there.commit(loose) == loose
    assert there.git("rev-list", loose).split() == [loose, sample.hashes[-1]]


def test_a_repository_elsewhere_is_sent_with_its_suite(sample, tmp_path):
    suite = Sample(tmp_path / "suite")
    text = (suite.folder / "asv.conf.json").read_text().replace('"repo": "."', f'"repo": "file://{sample.folder}"')
    suite.commit({"asv.conf.json": text.replace('"project": "sample"', '"project": "other"')})
    _, found = send(suite.folder, sample.hashes)
    there = source.checkout(found)
    assert there.is_mirror
    (tmp_path / "project").rename(tmp_path / "out of reach")
    assert [there.commit(commit) for commit in sample.hashes] == sample.hashes
    there.pull()


def test_two_clones_of_a_project_are_one_on_a_machine_and_another_configuration_is_not(sample, tmp_path):
    git(tmp_path, "clone", "--quiet", str(sample.folder), "other")
    found = source.of(project.find(sample.folder / "asv.conf.json"))
    assert source.of(project.find(tmp_path / "other" / "asv.conf.json")) == found
    assert dataclasses.replace(found, identity="0" * 16).place != found.place
    (sample.folder / "second.conf.json").write_text((sample.folder / "asv.conf.json").read_text())
    assert source.of(project.load(sample.folder / "second.conf.json")).identity != found.identity


def test_a_suite_that_is_in_no_repository_or_apart_from_a_local_one_is_refused(sample, tmp_path):
    apart = tmp_path / "apart"
    apart.mkdir()
    text = (sample.folder / "asv.conf.json").read_text().replace('"repo": "."', '"repo": "../project"')
    (apart / "asv.conf.json").write_text(text)
    with pytest.raises(click.ClickException, match="is in no git repository"):
        source.of(project.find(apart / "asv.conf.json"))
    git(apart, "init", "--quiet")
    git(apart, "add", "--all")
    git(apart, "commit", "--quiet", "-m", "suite")
    with pytest.raises(click.ClickException, match="name it by its URL"):
        source.of(project.find(apart / "asv.conf.json"))
