"""Files that take the place of others, and where they must not."""

import contextlib
import os
import threading

from convbench.store import whole


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
