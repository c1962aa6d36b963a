"""The text of docs/implementations.md: a table for each operation, made from what the implementations' files declare."""

from __future__ import annotations

import ast

from benchmarks.harness import cell

HEADING = """\
# Implementations

`python -m benchmarks implementations > docs/implementations.md` writes this page from what each file declares, and a test
compares the two.

* `cpu.fft` of the operation `conv2d` is the file `impls/conv2d/cpu/fft.py`. Its first lines give the idea, the cost in FLOPs
  and memory, and the source.
* `impls.names(operation, device)` lists these names, and `impls.load(name, operation)` loads one of them.
* *family* is the kind of algorithm, which also decides the tolerance ([add-an-implementation.md](add-an-implementation.md)).
* *on request*: measured only when a command names the implementation."""


def markdown() -> str:
    """The whole page."""
    return "\n\n".join([HEADING, *map(_section, cell.TASKS)]) + "\n"


def _section(operation: str) -> str:
    """The operation's signature in one sentence, and its implementations by name."""
    source = (cell.CHECKOUT / "impls" / operation / "__init__.py").read_text(encoding="utf-8")
    signature, _, meaning = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0].rpartition(")")
    lines = [f"## {operation}", "", f"`{signature})`{meaning}", "", "| name | device | family | summary |"]
    lines.append("|---|---|---|---|")
    for name, declared in cell.declarations(operation).items():
        summary = f"{declared.get('summary', '')}{' (on request)' * declared.get('on_request', False)}"
        fields = f"`{name}`", declared.get("device", ""), declared.get("family", ""), summary.replace("|", "\\|")
        lines.append(f"| {' | '.join(fields)} |")
    return "\n".join(lines)
