"""Results files that are broken in any way are named and passed over by asv: `"plugins": [".convbench.bad_files"]`.

asv does so where a file is no JSON. One that is no text, or JSON of another shape, stops `asv publish` with a traceback.
"""

from __future__ import annotations

from asv.results import Results
from asv.util import UserError

_load = Results.load


def load(_, path: str, machine_name: str | None = None) -> Results:
    """As asv's own; every file that it cannot read raises UserError."""
    try:
        return _load(path, machine_name)
    except (ValueError, TypeError, AttributeError, LookupError) as error:
        raise UserError(f"Error loading results file '{path}': {error!r}") from error


Results.load = classmethod(load)
