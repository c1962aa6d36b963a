"""Finds the functions that differ between two versions of a Python file, if nothing else does."""

from __future__ import annotations

import ast
import warnings
from typing import NamedTuple

from convbench.common import untrusted


class Function(NamedTuple):
    """A plain function, or a method of a plain class, by its place in a file."""

    name: str
    line: int
    column: int


class Functions(NamedTuple):
    """The functions whose bodies differ, as they stand on each side, in the same order."""

    base: tuple[Function, ...]
    head: tuple[Function, ...]


SAME = Functions((), ())


class _Emptied(ast.NodeTransformer):
    """Takes the bodies out of a module's plain functions; classes that are decorated or have keywords are left whole."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.found: list[tuple[Function, list[ast.stmt]]] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if node.decorator_list or node.keywords:
            return node
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()
        return node

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        if not node.decorator_list:
            function = Function(".".join([*self.names, node.name]), node.lineno, node.col_offset)
            self.found.append((function, node.body))
            node.body = [ast.Pass()]
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = _function


def differing(base: bytes, head: bytes) -> Functions | None:
    """The functions whose bodies differ; None where anything else does, or where a file cannot be read as Python.

    Comments and layout do not count. A function inside another is part of that one's body.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes in the strings of other projects
            trees = [ast.parse(text) for text in (base, head)]
            sides = [_Emptied() for _ in trees]
            emptied = [ast.dump(side.visit(tree)) for side, tree in zip(sides, trees, strict=True)]
            if emptied[0] != emptied[1]:
                return None
            pairs = [
                (old, new)
                for (old, before), (new, after) in zip(sides[0].found, sides[1].found, strict=True)
                if list(map(ast.dump, before)) != list(map(ast.dump, after))
            ]
    except (SyntaxError, *untrusted.FAULTS):
        return None
    return Functions(tuple(old for old, _ in pairs), tuple(new for _, new in pairs))
