"""The folder in which one measurement at a time works."""

import click
import pytest
from repositories import git

from convbench.common import lock


def test_only_one_holds_it_and_git_sees_nothing_of_it(tmp_path):
    git(tmp_path, "init", "--quiet")
    with lock.lock(tmp_path / ".convbench", tmp_path / "results"):
        second = lock.lock(tmp_path / ".convbench", tmp_path / "results")
        with pytest.raises(click.ClickException, match="two at once would disturb each other"), second:
            pass
        (tmp_path / ".convbench" / "run.log").touch()
        assert git(tmp_path, "status", "--porcelain") == ""
    with lock.lock(tmp_path / ".convbench", tmp_path / "results"):
        pass


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / ".convbench").mkdir()
    (kept := tmp_path / "kept").write_text("mine")
    (tmp_path / ".convbench" / ".gitignore").symlink_to(kept)
    with lock.lock(tmp_path / ".convbench", tmp_path / "results"):
        pass
    assert kept.read_text() == "mine"
