"""Files that replace others, and the cases in which they must not."""

import contextlib
import os
import threading

import click
import pytest
from gate_projects import Sample

from convbench.asv import project
from convbench.common import lock
from convbench.common.atomic_write import whole


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    target = tmp_path / "a.json"
    target.write_text("old")
    with contextlib.suppress(KeyError), whole(target) as new:
        new.write_text("half")
        raise KeyError
    assert (target.read_text(), list(tmp_path.iterdir())) == ("old", [target])
    with whole(target) as new:
        new.write_text("new")
        assert target.read_text() == "old"
    assert (target.read_text(), list(tmp_path.iterdir())) == ("new", [target])


def test_a_link_stays_one(tmp_path):
    (tmp_path / "there").mkdir()
    link = tmp_path / "a.json"
    link.symlink_to("there/b.json")
    for text in ("first", "second"):
        with whole(link) as new:
            new.write_text(text)
        assert link.is_symlink()
        assert (tmp_path / "there" / "b.json").read_text() == text


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    with whole(pipe) as new:
        new.write_text("all")
    reader.join(10)
    assert read == ["all"]
    assert pipe.is_fifo()


def test_a_name_beside_that_another_user_could_know_is_not_used(tmp_path):
    """A link under that name would let us overwrite its target."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    (shared := tmp_path / "shared").mkdir()
    for name in (".report.json.new", ".report.json", "report.json.new"):
        (shared / name).symlink_to(precious)
    with whole(shared / "report.json") as beside:
        assert beside.parent == shared
        assert beside.name not in {path.name for path in shared.iterdir() if path != beside}
        beside.write_text("{}")
    assert precious.read_text() == "precious"
    assert not (shared / "report.json").is_symlink()
    assert (shared / "report.json").read_text() == "{}"
    assert (shared / "report.json").stat().st_mode & 0o777 == 0o666 & ~umask()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link that is another user's")
def test_a_link_of_another_user_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("precious")
    link = tmp_path / "report.json"
    link.symlink_to(precious)
    os.lchown(link, 65534, 65534)
    with pytest.raises(PermissionError, match="another user"), whole(link) as beside:
        beside.write_text("{}")
    assert precious.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["precious", "report.json"]


def test_a_lock_truncates_nothing_through_a_link(tmp_path):
    made = Sample(tmp_path / "project")
    here = project.load(made.folder / "asv.conf.json")
    precious = tmp_path / "precious"
    precious.write_text("precious")
    here.work.mkdir()
    (here.work / "lock").symlink_to(precious)
    with pytest.raises(click.ClickException, match="cannot write to"), lock.lock(here.work, here.results):
        pass
    assert precious.read_text() == "precious"


def umask():
    old = os.umask(0)
    os.umask(old)
    return old


def test_links_in_a_circle_are_an_error(tmp_path):
    (tmp_path / "a.json").symlink_to("b.json")
    (tmp_path / "b.json").symlink_to("a.json")
    with pytest.raises(OSError, match="symbolic links"), whole(tmp_path / "a.json"):
        pass
