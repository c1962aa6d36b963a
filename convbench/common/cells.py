"""A cell, one benchmark with one combination of parameters, and how it is written."""

from __future__ import annotations

import ast
import functools

from convbench.common import untrusted

Cell = tuple[str, tuple[str, ...]]

LONGEST = 1000  # characters of a parameter that are taken for Python, whose parser is not made for a stranger's text


def spelling(cell: Cell) -> str:
    """A cell as asv writes it for --bench."""
    name, params = cell
    return f"{name}({', '.join(params)})" if params else name


@functools.lru_cache(maxsize=4096)  # the same few stand in every cell
def plain(text: str) -> str:
    """A parameter as a person writes it: asv stores Python's repr."""
    if len(text) > LONGEST:
        return text
    try:
        value = ast.literal_eval(text)
        return value if isinstance(value, str) else str(value)
    except (SyntaxError, *untrusted.FAULTS):
        return text
