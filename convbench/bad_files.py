"""Results files that are broken in any way are named and passed over by asv: `"plugins": [".convbench.bad_files"]`.

asv does so where a file is no JSON. One that is no text, a link, or JSON of another shape stops `asv publish` with a
traceback, and one whose parameters have too many combinations with no memory left.
"""

from __future__ import annotations

from pathlib import Path

from asv.results import Results
from asv.util import UserError

from convbench import results, untrusted

_load = Results.load


def load(_, path: str, machine_name: str | None = None) -> Results:
    """As asv's own; every file that it cannot read raises UserError."""
    try:
        with untrusted.understanding(Path(path)):
            results.read(Path(path))
            return _load(path, machine_name)
    except (untrusted.Unreadable, OSError) as error:
        raise UserError(f"Error loading results file '{path}': {error}") from error


Results.load = classmethod(load)
