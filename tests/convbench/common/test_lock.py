"""The folder in which one measurement at a time works."""

import subprocess
import sys

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


def test_no_two_measure_on_one_machine_whichever_clone_asks(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    with lock.lock(one, one):
        with pytest.raises(click.ClickException, match="measuring on this machine"), lock.lock(other, other):
            pass
        with lock.folder(other, other):  # others measure for it
            pass
    with lock.lock(other, other):
        pass


def test_a_process_keeps_it_after_another_measurement_has_ended(tmp_path):
    code = """
import sys
from pathlib import Path
from convbench.common import lock
lock.keep(10)
with lock.lock(Path(sys.argv[1]), Path(sys.argv[1])):
    print("kept")
"""
    one = tmp_path / "one"
    with lock.lock(one, one):
        process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    assert process.communicate(timeout=30)[0] == "kept\n"


def test_the_lock_of_the_machine_serves_every_user(tmp_path):
    code = """
import os, sys
from pathlib import Path
from convbench.common import lock
os.getuid() or os.setuid(65534)
folder = Path(sys.argv[1]) / str(os.getpid())
with lock.lock(folder, folder):
    print("held")
"""
    tmp_path.chmod(0o777)
    for parent in list(tmp_path.parents)[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)

    def other():
        return subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)

    with lock.lock(tmp_path / "one", tmp_path):
        assert "measuring on this machine" in (refused := other()).stderr, refused
    assert other().stdout == "held\n"


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / ".convbench").mkdir()
    (kept := tmp_path / "kept").write_text("mine")
    (tmp_path / ".convbench" / ".gitignore").symlink_to(kept)
    with lock.lock(tmp_path / ".convbench", tmp_path / "results"):
        pass
    assert kept.read_text() == "mine"
