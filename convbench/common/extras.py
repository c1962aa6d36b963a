"""Errors for missing optional dependencies, as in `pip install 'convbench[page]'`."""

from __future__ import annotations

import importlib.util

import click


def require(what: str, extra: str, *modules: str) -> None:
    """Raise ClickException that names the extra where a module is missing. what: needs it, at the beginning of a sentence."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if missing:
        raise click.ClickException(f"{what} needs {' and '.join(missing)}: pip install 'convbench[{extra}]'")
