"""Has asv report and skip results files that are broken in any way.

A plugin: `"plugins": [".convbench.asv.tolerant_results"]`.

asv itself skips only files that are not JSON. A file that is not text, a link, a pipe, or JSON of another shape stops `asv
publish` with a traceback or forever; one with too many combinations of parameters exhausts the memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from asv import util
from asv.commands import publish
from asv.console import log
from asv.results import Results
from asv.util import UserError

from convbench.asv import files
from convbench.common import untrusted

MACHINE, BENCHMARKS = "machine.json", "benchmarks.json"
_load, _load_json, _machine_files = Results.load, util.load_json, publish.iter_machine_files


def load(_, path: str, machine_name: str | None = None) -> Results:
    """Replace asv's load: every unreadable file raises UserError."""
    try:
        with untrusted.understanding(Path(path)):
            files.read(Path(path))
            found = _load(path, machine_name)
            for values in filter(None, found._results.values()):  # graphs and their JSON hold numbers alone
                values[:] = [None if files.no_number(value) else value for value in values]
            return found
    except (untrusted.Unreadable, OSError) as error:
        raise UserError(f"Error loading results file '{path}': {error}") from error


def load_json(path: str, api_version: int | None = None, js_comments: bool = False) -> Any:
    """Replace asv's load_json: an invalid file of a machine or of the benchmarks raises UserError."""
    file = Path(path)
    if file.name in (MACHINE, BENCHMARKS) and file.exists():
        try:
            with untrusted.understanding(file):
                content = untrusted.read_json(file)
                if file.name == BENCHMARKS:
                    files.benchmarks(content)
                elif not isinstance(content, dict) or not isinstance(content.get("machine"), str):
                    raise untrusted.Malformed("it has no machine name")
        except untrusted.Unreadable as error:
            raise UserError(str(error)) from error
    return _load_json(path, api_version, js_comments)


def machine_files(folder: str) -> Iterator[str]:
    """Replace asv's search for machine files: those that name no machine are skipped."""
    for path in _machine_files(folder):
        try:
            util.load_json(path)
        except (UserError, OSError) as error:
            log.warning(str(error))
        else:
            yield path


Results.load = classmethod(load)
util.load_json = load_json
publish.iter_machine_files = machine_files
