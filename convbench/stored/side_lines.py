"""Reads and writes the compressed JSON lines beside asv's files. A side file has a line for each cell and round.

Compressed, since a checkout has to stay light; without a date, so that the same lines make the same file.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from convbench.asv import files
from convbench.common import atomic_write, untrusted
from convbench.common.cells import Cell
from convbench.common.untrusted import Unreadable

COMPRESSED = ".gz"
ENDING = f".cells.jsonl{COMPRESSED}"
COMPRESSION_LEVEL = 6  # 9 makes 5 MB of lines 3 % smaller and takes four times as long, after every measurement
GZIP = 16 + zlib.MAX_WBITS  # zlib's number for data with gzip's header


def path(results: Path) -> Path:
    """The path of a results file's side file."""
    return results.with_name(f"{results.stem}{ENDING}")


def keep_versions(versions: Mapping[str, str], results: Path) -> None:
    """Add the versions that the cells were measured with to a side file, unless it has them already.

    Raises ClickException if that cannot be written.
    """
    if versions and read_all(results).versions != versions:
        append([{"versions": dict(versions)}], path(results))


def keep(side: Path, results: Path) -> None:
    """Add the lines of a run to the side file of a results file, but for samples, which asv's own file has.

    Raises ClickException if that cannot be written.
    """
    whole = [line for line in json_lines(side) if isinstance(line, dict)]
    append(({key: value for key, value in line.items() if key != "samples"} for line in whole), path(results))


@dataclass(frozen=True)
class Lines:
    """cells: the line that counts for each, by benchmark and parameters. versions: of what they were measured with."""

    cells: dict[Cell, dict[str, Any]]
    versions: dict[str, str]


def read_all(results: Path) -> Lines:
    """The contents of a side file, as far as it is readable."""
    try:
        beside = path(results)
        return Lines(read(beside), _versions(beside))
    except Unreadable as error:
        untrusted.warn(error)
        return Lines({}, {})


def _versions(path: Path) -> dict[str, str]:
    """The last line of a side file about an environment instead of a cell."""
    found = {}
    for line in json_lines(path):
        if isinstance(line, dict) and "benchmark" not in line and _is_texts(line.get("versions")):
            found = line["versions"]
    return found


def _is_texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def read(path: Path) -> dict[Cell, dict[str, Any]]:
    """The line that counts for each cell; a line cut short by a crash is skipped.

    That is the last one, but a failure counts before whatever else the same run says of the cell: an answer that is wrong
    in one process of two is wrong. Raises Unreadable if a file is there and cannot be read at all.
    """
    lines: dict[Cell, dict[str, Any]] = {}
    for line in json_lines(path):
        if not _is_sound(line):
            continue
        cell = line["benchmark"], tuple(line["params"])
        before = lines.get(cell, {})
        same_run = "run" in line and line["run"] == before.get("run")
        if not (same_run and before.get("status") == "failed"):
            lines[cell] = line
    return lines


def _is_sound(line: Any) -> bool:
    """Whether a line of a side file is valid."""
    try:
        texts = [line["benchmark"], line["status"], *line["params"], *(line.get("versions") or {}).values()]
        texts += [line[key] for key in ("reason",) if line.get(key) is not None]
        numbers = [line[key] for key in ("relative_l2", "cold", "wall", "ended", "value") if line.get(key) is not None]
        pools = line.get("threads") or {}
        numbers += pools.values()
        samples = line.get("samples") or []
        numbers += samples
        return (
            isinstance(line["params"], list)
            and isinstance(samples, list)
            and all(isinstance(text, str) for text in texts)
            and all(map(_is_number, numbers))
            and all(isinstance(count, int) for count in pools.values())
        )
    except untrusted.FAULTS:
        return False


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, int) and abs(value) < files.MAX_INTEGER)


def json_lines(path: Path) -> Iterator[Any]:
    """The content of each line of JSON in a file, which may be missing or compressed; lines cut short are skipped.

    Raises Unreadable for a file that is not regular or too large, before or after it is decompressed.
    """
    for text in _read(path).decode(errors="replace").split("\n"):
        with contextlib.suppress(*untrusted.FAULTS):
            yield json.loads(text)


def append(lines: Iterable[Mapping[str, Any]], target: Path) -> None:
    """Add lines to a compressed file, which is replaced as a whole, so that a crash leaves the old one.

    Raises ClickException if that cannot be written, or the old file cannot be read.
    """
    try:
        before = _read(target)
        if before and not before.endswith(b"\n"):
            before += b"\n"  # a line that was cut short takes none of ours with it
        content = before + "".join(json.dumps(line) + "\n" for line in lines).encode()
        target.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write.whole(target) as beside:
            beside.write_bytes(gzip.compress(content, COMPRESSION_LEVEL, mtime=0))
    except Unreadable as error:
        raise click.ClickException(f"{error}; move it away to store new lines") from None
    except OSError as error:
        raise click.ClickException(f"cannot write to {target}: {error.strerror}") from None


def _read(path: Path) -> bytes:
    """The content of a file, decompressed, b"" if there is none. Raises Unreadable."""
    if not (path.exists() or path.is_symlink()):
        return b""
    content = untrusted.read_bytes(path)
    return _decompressed(content, path) if path.suffix == COMPRESSED else content


def _decompressed(content: bytes, path: Path) -> bytes:
    """The data of one gzip member, up to where it is cut short. Raises Unreadable for other data and for too much of it."""
    stream = zlib.decompressobj(GZIP)
    try:
        data = stream.decompress(content, untrusted.LARGEST + 1)
    except zlib.error as error:
        raise Unreadable(f"{untrusted.name(path)} is unreadable: {error}") from None
    if len(data) > untrusted.LARGEST:
        raise Unreadable(f"{untrusted.name(path)} is unreadable: it has more than {untrusted.LARGEST >> 10} KiB decompressed")
    if stream.unused_data:
        raise Unreadable(f"{untrusted.name(path)} is unreadable: other data follows the compressed lines")
    return data
