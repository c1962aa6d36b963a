"""The arguments of a user's own problem of each operation: sizes, files or a label, and options."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click

Read = Callable[[str, str], Any]  # of an argument's name and text; raises click.BadParameter


@dataclass(frozen=True)
class Form:
    """The arguments of an operation's problem, each with how its text is read, and the names of its options."""

    arguments: dict[str, Read]
    options: tuple[str, ...] = ()


def sizes(name: str, text: str, count: int | None = None, example: str = "16x16x16") -> list[int]:
    """Numbers joined by x; count: how many, any number of them without it."""
    if not re.fullmatch(r"[0-9]{1,18}(x[0-9]{1,18})*", text) or count not in (None, text.count("x") + 1):
        many = "a number" if count == 1 else f"{count} numbers joined by x" if count else "numbers joined by x"
        raise click.BadParameter(f"{text!r} is not {many}, as in {example}", param_hint=name)
    return [int(size) for size in text.split("x")]


def bands(name: str, text: str) -> list[int]:
    """Numbers joined by commas."""
    if not re.fullmatch(r"[0-9]{1,9}(,[0-9]{1,9})*", text):
        raise click.BadParameter(f"{text!r} is not numbers joined by commas, as in 4,3,2", param_hint=name)
    return [int(band) for band in text.split(",")]


def _path(name: str, text: str) -> str:
    """Whole, since the suite's process works in its own folder; whether it is there the suite says."""
    return str(Path(text).absolute())


def _text(name: str, text: str) -> str:
    return text


CONVOLUTION = Form(
    {
        "INPUT": partial(sizes, count=4, example="1x64x56x56"),
        "WEIGHT": partial(sizes, count=4, example="128x64x3x3"),
    },
    ("stride", "padding", "dilation", "groups", "dtype"),
)
FORMS = {
    "conv2d": CONVOLUTION,
    "conv2d_backward": CONVOLUTION,
    "conv_transpose2d": CONVOLUTION,
    "im2col": Form({"IMAGE": sizes, "KERNEL": sizes}, ("stride", "padding", "dilation", "fill", "dtype")),
    "read_batch": Form({"FOLDER": _path}, ("batch", "bands")),
    "preprocess": Form({"PICTURE": _path}, ("region", "size")),
    "adam_step": Form({"PROBLEM": _text}, ("dtype",)),
}
LABELLED = Form({"PROBLEM": _text})  # of all other operations
LABELLED_CONVOLUTION = Form(LABELLED.arguments, ("dtype",))
LABEL = re.compile(r"n[0-9]+c[0-9]")  # of a convolution, as tables print it, also behind the name of its set


def request(operation: str, texts: Sequence[str], options: dict[str, Any], given: Collection[str]) -> dict[str, Any]:
    """The request in the suite's form; arguments beyond those of the form are names of implementations.

    options: all, with their defaults. given: the names of those that the user gave. Raises click.UsageError for a missing
    argument or an option that the operation has not, and click.BadParameter for a text that is not what its form says.
    """
    form = FORMS.get(operation, LABELLED)
    if form is CONVOLUTION and texts and LABEL.search(texts[0]):
        form = LABELLED_CONVOLUTION
        _require_nothing_twice(texts[1:], {*CONVOLUTION.options}.intersection(given).difference(form.options))
    if len(texts) < len(form.arguments):
        raise click.UsageError(f"Missing argument '{[*form.arguments][len(texts)]}' of {operation}.")
    every = {name for each in FORMS.values() for name in each.options}
    for name in sorted(every.intersection(given).difference(form.options)):
        has = ", ".join(f"--{option}" for option in form.options) or "none"
        raise click.UsageError(f"--{name} is not an option of {operation}; its options are {has}")
    found = {name: value for name, value in options.items() if name not in every or name in form.options}
    for (name, read), text in zip(form.arguments.items(), texts, strict=False):
        found[name.lower()] = read(name, text)
    if "padding" in found:
        found["padding"] = _padding(found["padding"], form is CONVOLUTION)
    if found.get("bands"):
        found["bands"] = bands("--bands", found["bands"])
    if found.get("region"):
        found["region"] = sizes("--region", found["region"], 4, "0x0x120x160")
    return {**found, "operation": operation, "names": list(texts[len(form.arguments) :])}


def _require_nothing_twice(texts: Sequence[str], options: Collection[str]) -> None:
    """Raises click.UsageError for what a label has already."""
    twice = [f"--{name}" for name in sorted(options)] + [text for text in texts if re.fullmatch(r"[0-9]+(x[0-9]+)+", text)]
    if twice:
        raise click.UsageError(f"a label already has the weight and all settings but --dtype: leave out {', '.join(twice)}")


def _padding(text: str, pair: bool) -> str | list[int]:
    """ "same", or a number for each axis; pair: of an operation with two axes, which may have both by one number."""
    if not pair:
        return sizes("--padding", text, example="1 or 1x2x0")
    if text == "same":
        return text
    count = 2 if "x" in text else 1
    return sizes("--padding", text, count, "1, 1x2 or same") * (3 - count)
