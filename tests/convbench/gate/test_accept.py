"""Accepted regressions: their files, the cells they match, and which of them count."""

import os

import pytest

from convbench.gate import accept, failures, resolve
from convbench.gate.accept import Acceptance


def read(folder, text):
    (folder / accept.FILE).write_bytes(text if isinstance(text, bytes) else text.encode())
    return accept.read(folder / accept.FILE)


def test_a_file_of_acceptances(tmp_path):
    found = read(
        tmp_path,
        '[[accept]]\ncell = "a.time_*"\nreason = "exact now"\n\n[[accept]]\nreason = "ö"\ncell = "b.time_b(\'x\', 3)"\n',
    )
    assert found == [
        Acceptance("a.time_*", "exact now", accept.FILE),
        Acceptance("b.time_b('x', 3)", "ö", accept.FILE),
    ]
    assert str(found[0]) == "accepted by convbench-accept.toml: exact now"


@pytest.mark.parametrize("text", ["", "# nothing\n", "accept = []\n"])
def test_a_file_that_accepts_nothing(tmp_path, text):
    assert read(tmp_path, text) == []


def test_no_file(tmp_path):
    assert accept.read(tmp_path / accept.FILE) == []
    (tmp_path / accept.FILE).symlink_to("nowhere")
    assert accept.read(tmp_path / accept.FILE) == []


@pytest.mark.parametrize("kind", ["a folder", "a device", "a pipe"])
def test_what_is_no_file(tmp_path, kind):
    """A commit may contain a folder or a link under that name; reading /dev/zero or a pipe would not end."""
    path = tmp_path / accept.FILE
    if kind == "a folder":
        path.mkdir()
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    with pytest.raises(accept.Malformed, match=f"^{accept.FILE} cannot be read: (it is not a regular file|Is a directory)$"):
        accept.read(path)


ENTRY = '[[accept]]\ncell = "a"\nreason = "b"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[[accept", "is not valid TOML: "),
        ("cell", "is not valid TOML: "),
        (b"\xff", "is not valid TOML: "),
        ("accept = 3", "may hold only [[accept]] tables"),
        ("[accept]\ncell = 'a'", "may hold only [[accept]] tables"),
        ("[[accepts]]\ncell = 'a'\nreason = 'b'", "may hold only [[accept]] tables"),
        (f"level = 0.9\n{ENTRY}", "may hold only [[accept]] tables"),
        ("[[accept]]\ncell = 'a'", ": entry 1 needs a cell and a reason, and nothing else"),
        (f"{ENTRY}until = 2030-01-01", ": entry 1 needs a cell and a reason, and nothing else"),
        (f"{ENTRY}[[accept]]\nreason = 'b'", ": entry 2 needs a cell and a reason, and nothing else"),
        ("accept = [1]", ": entry 1 needs a cell and a reason, and nothing else"),
        (f"{ENTRY}[[accept]]\ncell = 3\nreason = 'b'", ": cell and reason of entry 2 have to be text"),
        ("[[accept]]\ncell = 'a'\nreason = ' '", ": cell and reason of entry 1 have to be text"),
        ("[[accept]]\ncell = ''\nreason = 'b'", ": cell and reason of entry 1 have to be text"),
        ("[[accept]]\ncell = ['a']\nreason = 'b'", ": cell and reason of entry 1 have to be text"),
        ("accept = " + "[" * 100_000, "is not valid TOML: "),
        (f"accept = {'1' * 5000}", "is not valid TOML: "),
    ],
)
def test_a_malformed_file(tmp_path, text, sentence):
    with pytest.raises(accept.Malformed) as caught:
        read(tmp_path, text)
    said = str(caught.value)
    assert said.startswith(accept.FILE)
    assert sentence in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("cell", "name", "fits"),
    [
        ("a.time_a", "a.time_a", True),
        ("a.time_a", "a.time_ab", False),
        ("a.time_*", "a.time_ab", True),
        ("a.TIME_*", "a.time_ab", False),
        ("a.time_a([1, 2], 'x')", "a.time_a([1, 2], 'x')", True),  # as a glob, [1, 2] is one character
        ("a.time_a*'x')", "a.time_a([1, 2], 'x')", True),
        ("*", "a.time_a([1, 2], 'x')", True),
        ("time_a", "a.time_a", False),
    ],
)
def test_what_an_acceptance_fits(cell, name, fits):
    assert (accept.find(name, [Acceptance(cell, "r", "f")]) is not None) == fits


def test_the_first_that_fits():
    both = [Acceptance("b", "0", "f"), Acceptance("a*", "1", "f"), Acceptance("a", "2", "f")]
    assert accept.find("a", both).reason == "1"
    assert accept.find("c", both) is None


def test_an_accept_file_of_another_name_is_named_in_what_it_accepts(tmp_path):
    (tmp_path / "mine.toml").write_text(ENTRY)
    assert [str(found) for found in accept.read(tmp_path / "mine.toml")] == ["accepted by mine.toml: b"]
    (tmp_path / "mine.toml").write_text("accept = 3")
    with pytest.raises(accept.Malformed, match=r"^mine.toml may hold"):
        accept.read(tmp_path / "mine.toml")


OTHER = ENTRY.replace('"a"', '"c"')


@pytest.mark.parametrize(
    ("given", "own", "accepted", "proposed"),
    [
        (None, ENTRY, ["a"], []),
        ("", ENTRY, [], ["a"]),
        (ENTRY, "", ["a"], []),
        (ENTRY, ENTRY, ["a"], []),
        (ENTRY, ENTRY + OTHER, ["a"], ["c"]),
        (ENTRY, ENTRY.replace('"b"', '"of another reason"'), ["a"], ["a"]),
    ],
)
def test_the_heads_own_file_only_proposes_where_another_is_named(tmp_path, given, own, accepted, proposed):
    (tmp_path / accept.FILE).write_text(own)
    (tmp_path / "mine.toml").write_text(given or "")
    found = resolve.acceptances(tmp_path, resolve.named_file(None if given is None else tmp_path / "mine.toml"))
    assert [acceptance.cell for acceptance in found.counted] == accepted
    assert [acceptance.cell for acceptance in found.proposed] == proposed
    assert found.proposal_error is None


def test_a_malformed_file_of_the_head_counts_only_where_no_other_is_named(tmp_path):
    (tmp_path / accept.FILE).write_text("accept = 3")
    found = resolve.acceptances(tmp_path, [])
    assert found.counted == []
    assert found.proposal_error.startswith("convbench-accept.toml may hold")
    with pytest.raises(failures.Usage):
        resolve.acceptances(tmp_path, None)
