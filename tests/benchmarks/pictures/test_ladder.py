"""The rungs of a training: every part is seen in every rung, compiled or not, and the picture has the post's beside them."""

import json
import re

import pytest
from picture_commands import run_here

from benchmarks.errors import Skip
from benchmarks.pictures import ladder
from benchmarks.pictures.watched import Watched

pytest.importorskip("sklearn", reason="the digits ship with scikit-learn")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed: pip install pillow")


@pytest.mark.parametrize("name", ladder.RUNGS)
def test_the_parts_add_up_to_the_step(name):
    try:
        rung = ladder.prepare(name)
    except Skip as skip:
        pytest.skip(str(skip))
    found = next(ladder.measure(rung))[name]
    assert list(found.parts) == [*ladder.PARTS, ladder.REST]
    assert all(found.parts[part] > 0 for part in ("update", "products", ladder.REST))
    assert (found.parts["fill"] > 0) == (name != "cpu.cython_fused")
    assert 0.1 < sum(found.parts.values()) / found.seconds < 10  # in what unit
    assert found.cost == pytest.approx(sum(found.parts.values()) / found.seconds - 1)


def test_the_posts_parts_are_its_whole():
    for rung in ladder.RUNGS.values():
        assert rung.parts is None or sum(rung.parts.values()) == rung.seconds


def test_a_bar_for_each_rung_and_for_each_of_the_post(tmp_path):
    parts = dict.fromkeys((*ladder.PARTS, ladder.REST), 1e-3)
    ladder.draw({name: Watched(parts, 4e-3, 0.0) for name in ("cpu.numpy", "cpu.a")}, "the title", tmp_path / "ladder.svg")
    text = (tmp_path / "ladder.svg").read_text()
    assert all(
        text.count(f"<!-- {word} -->") == 1 for word in ("the title", *parts, ladder.ALL, "755", "777", "727", "cpu.a")
    )
    assert text.count("<!-- 48 -->") == 2  # 12,000 steps of 4 ms


def test_the_command_says_what_it_drew(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "ROUNDS", 1)
    path = tmp_path / "new" / "ladder.png"
    done = run_here("ladder", json.dumps({"names": ["cpu.numpy", "cpu.absent"], "path": str(path)}))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cpu.absent: not in this commit\n")
    *_, numpy, last = done.stdout.splitlines()
    assert re.fullmatch(
        r"cpu.numpy: \S+ ms a step, \S+ s for 12,000 steps; watched \(\S+%\): update \S+, products \S+, fill \S+, rest \S+",
        numpy,
    )
    assert last == f"the ladder is {path}"
    with Image.open(path) as picture:
        assert picture.width > 1000


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"names": ["cpu.absent"]}, "no ladder: none of the implementations can run here"),
        ({"steps": 5}, "no ladder: a request has names and path, not steps"),
    ],
)
def test_errors_in_a_sentence(request_, words):
    done = run_here("ladder", json.dumps(request_))
    assert done.returncode == 1
    assert words in done.stderr
