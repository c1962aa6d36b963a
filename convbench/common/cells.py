"""A cell: one benchmark with one combination of parameters, and its spelling."""

from __future__ import annotations

import ast
import functools
from typing import Any

from convbench.common import untrusted

Cell = tuple[str, tuple[str, ...]]

LONGEST = 1000  # characters of a parameter that are taken for Python, whose parser is not safe for longer untrusted text


def spelling(cell: Cell) -> str:
    """A cell as asv writes it for --bench."""
    name, params = cell
    return f"{name}({', '.join(params)})" if params else name


@functools.lru_cache(maxsize=4096)  # cells share few different parameters
def plain(text: str) -> str:
    """A parameter without the quotes of asv's repr. A string that looks like another value keeps its quotes.

    >>> plain("'64x64'"), plain("None"), plain("'None'"), plain("1"), plain("'1'")
    ('64x64', 'None', "'None'", '1', "'1'")
    """
    value = _value(text)
    if not isinstance(value, str):
        return text if value is None and text != "None" else str(value)
    return text if _value(value) is not None or value == "None" else value


def _value(text: str) -> Any:
    """The Python value of a text, None if it has none."""
    try:
        return ast.literal_eval(text) if len(text) <= LONGEST else None
    except (SyntaxError, *untrusted.FAULTS):
        return None
