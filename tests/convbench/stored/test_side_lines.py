"""Side files and other compressed lines: what is written is read back, and what is damaged is named."""

import gzip
import json

import click
import compressed
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convbench.common import untrusted
from convbench.common.untrusted import Unreadable
from convbench.stored import side_lines


def line(name, *params, **facts):
    return {"benchmark": name, "params": list(params), **facts}


@given(cut=st.integers(0, 200), zipped=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_side_file_cut_anywhere_keeps_its_whole_lines(tmp_path_factory, cut, zipped):
    """Plain, as while it is written, or compressed, where less of it is left."""
    path = tmp_path_factory.mktemp("side") / ("x.cells.jsonl" + ".gz" * zipped)
    lines = [json.dumps(line("b", str(i), status="ok")) + "\n" for i in range(4)]
    text = "".join(lines).encode()
    path.write_bytes((gzip.compress(text) if zipped else text)[:cut])
    found = list(side_lines.read(path))
    assert found == [("b", (str(i),)) for i in range(len(found))]
    whole = sum(cut >= len("".join(lines[: i + 1]).rstrip("\n")) for i in range(4))
    assert zipped or len(found) == whole


def test_lines_are_added_to_what_is_there_and_the_same_lines_make_the_same_file(tmp_path):
    target = side_lines.path(tmp_path / "box" / "x.json")
    lines = [line("b", str(i), status="ok") for i in range(4)]
    side_lines.append(lines[:1], target)
    side_lines.append(lines[1:], target)
    assert list(side_lines.json_lines(target)) == lines
    together = tmp_path / "together.gz"
    side_lines.append(lines, together)
    assert together.read_bytes() == target.read_bytes()
    assert set(tmp_path.glob("**/*")) == {tmp_path / "box", together, target}


def test_a_line_that_was_cut_short_takes_no_other_with_it(tmp_path):
    target = tmp_path / "x.gz"
    compressed.write_text(target, json.dumps(line("a", status="ok")) + '\n{"bench')
    side_lines.append([line("b", status="ok")], target)
    compressed.write_text(target, gzip.decompress(target.read_bytes()) + b"\xff\xfe")
    assert [name for name, _ in side_lines.read(target)] == ["a", "b"]


def test_lines_are_kept_without_samples(tmp_path):
    (tmp_path / "cells.jsonl").write_text(json.dumps(line("a", status="ok", samples=[1.0], wall=2.0)) + '\n7\n{"bench')
    side_lines.keep(tmp_path / "cells.jsonl", tmp_path / "x.json")
    assert list(side_lines.json_lines(tmp_path / "x.cells.jsonl.gz")) == [line("a", status="ok", wall=2.0)]


DAMAGED = {
    "no gzip": (b'{"benchmark": "b"}\n', "incorrect header check"),
    "damaged": (gzip.compress(b"{}\n")[:-8] + bytes(8), "incorrect data check"),
    "more behind it": (gzip.compress(b"{}\n") + gzip.compress(b"{}\n"), "other data follows the compressed lines"),
    "too much": (gzip.compress(bytes(untrusted.LARGEST + 1), 1), "it has more than 65536 KiB decompressed"),
}


@pytest.mark.parametrize(("content", "said"), DAMAGED.values(), ids=DAMAGED)
def test_compressed_lines_that_cannot_be_read_are_named_and_not_replaced(tmp_path, content, said):
    target = tmp_path / "x.cells.jsonl.gz"
    target.write_bytes(content)
    with pytest.raises(Unreadable, match=rf"/x\.cells\.jsonl\.gz is unreadable: .*{said}"):
        list(side_lines.json_lines(target))
    with pytest.raises(click.ClickException, match=r"x\.cells\.jsonl\.gz is unreadable: .*; move it away"):
        side_lines.append([{}], target)
    assert target.read_bytes() == content


def test_lines_are_added_through_no_link(tmp_path):
    (tmp_path / "x.gz").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(click.ClickException, match="it is a link"):
        side_lines.append([{}], tmp_path / "x.gz")
    assert not (tmp_path / "elsewhere").exists()


def test_no_side_file_no_lines(tmp_path):
    assert side_lines.read(tmp_path / "none.jsonl") == {}


def test_the_versions_of_an_environment_are_kept_once_and_are_no_cell(tmp_path):
    results = tmp_path / "0-env.json"
    for versions in ({"python": "3.11.7"}, {"python": "3.11.7"}, {"python": "3.11.9"}, {}):
        side_lines.keep_versions(versions, results)
    lines = compressed.read_text(side_lines.path(results)).splitlines()
    assert list(map(json.loads, lines)) == [{"versions": {"python": "3.11.7"}}, {"versions": {"python": "3.11.9"}}]
    assert side_lines.read_all(results) == side_lines.Lines({}, {"python": "3.11.9"})


@pytest.mark.parametrize("line", ['{"versions": {"python": 3}}', '{"versions": ["python"]}', "[]", '{"versions": {"a": "b"'])
def test_versions_of_another_shape_are_none(tmp_path, line):
    results = tmp_path / "0-env.json"
    compressed.write_text(side_lines.path(results), line)
    assert side_lines.read_all(results).versions == {}


def test_a_side_file_that_cannot_be_read_has_no_versions(tmp_path, capsys):
    results = tmp_path / "0-env.json"
    side_lines.path(results).write_bytes(b"no gzip")
    assert side_lines.read_all(results) == side_lines.Lines({}, {})
    assert "0-env.cells.jsonl.gz" in capsys.readouterr().err
