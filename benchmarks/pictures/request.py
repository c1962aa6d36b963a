"""From a request to a picture: the gallery, curves of training, stages of preprocess; what is drawn is said in words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import Skip
from benchmarks.harness import cell

EXPECTED = (ValueError, TypeError, LookupError, ImportError, MemoryError, OSError)


@dataclass(frozen=True)
class Picture:
    """What a request may say, with what is meant where it does not; and what makes the picture of it."""

    settings: dict[str, Any]
    make: Callable[[dict[str, Any], Path], None]


def gallery(settings: dict[str, Any], path: Path) -> None:
    """The photograph through the filters by every implementation."""
    from benchmarks.pictures import gallery

    rows = []
    for row in gallery.rows(settings["names"] or cell.implementations()):
        said = sorted({str(picture) for picture in row.pictures.values() if isinstance(picture, str)})
        print(f"{row.name}: {'; '.join(said) or 'drawn'}", flush=True)
        rows.append(row)
    gallery.draw(rows, path)


def curves(settings: dict[str, Any], path: Path) -> None:
    """Loss and accuracy while training, by several implementations of train_step."""
    from benchmarks.pictures import curves
    from benchmarks.workloads import digits

    functions, lacking = curves.loaded(settings["names"] or curves.SHOWN, settings["threads"])
    for name, reason in lacking.items():
        print(f"{name}: {reason}", flush=True)
    if not functions:
        raise LookupError("none of the implementations can run here")
    found: list[curves.Curve] = []
    for step, steps, made in curves.train(functions, *(settings[key] for key in ("network", "batch", "epochs"))):
        print(f"\rstep {step} of {steps}", end="" if step < steps else "\n", flush=True)
        found = made
    for curve in found:
        ratio = curve.seconds[-1] / found[0].seconds[-1]
        print(
            f"{curve.name}: {curve.seconds[-1]:.3g} s, {ratio:.2f} times {found[0].name}; "
            f"loss {curve.losses[-1]:.3g}, {curve.accuracies[-1]:.1%} of the test images named rightly"
        )
    title = f"the {settings['network']} network on {digits.load().name}, batches of {settings['batch']}"
    curves.draw(found, f"{title}, {settings['threads']} thread{'s' * (settings['threads'] > 1)}", path)


def stages(settings: dict[str, Any], path: Path) -> None:
    """Where the time of preprocess goes, image by image and in batches."""
    from benchmarks.pictures import stages
    from benchmarks.workloads.jpegs import Frames

    frames = Frames.parse(settings["problem"])
    calls: dict[tuple[str, int], Callable[[], Any]] = {}
    found: list[stages.Bar] = []
    for name in settings["names"] or stages.SHOWN:
        try:
            calls |= stages.prepare(name, frames)
        except Skip as skip:
            print(f"{name}: {skip}", flush=True)
    for i, bars in enumerate(stages.measure(calls) if calls else (), 1):
        found = bars
        print(f"\rround {i} of {stages.ROUNDS}", end="" if i < stages.ROUNDS else "\n", flush=True)
    for bar in found:
        parts = ", ".join(f"{stage} {1e3 * seconds:.3g}" for stage, seconds in bar.stages.items())
        many = f"{bar.count} image{'s' * (bar.count > 1)}"
        print(f"{bar.name}, {many}: {1e3 * bar.seconds:.3g} ms an image; watched: {parts}")
    stages.draw(found, f"preprocess, h{frames.label.partition('h')[2]}: ms an image by stage, so many images at a time", path)


PICTURES = {
    "gallery": Picture({"names": []}, gallery),
    "curves": Picture({"names": [], "network": "convolutional", "batch": 100, "epochs": 20, "threads": 1}, curves),
    "stages": Picture({"names": [], "problem": "n1h480w640y120x160s128"}, stages),
}


def draw(verb: str, request: dict[str, Any]) -> None:
    """Draw one, into request["path"] or a file of its name in .convbench; where it cannot, a sentence ends the process."""
    picture = PICTURES[verb]
    if unknown := set(request) - {*picture.settings, "path"}:
        sys.exit(f"no {verb}: a request has {', '.join(picture.settings)} and path, not {', '.join(sorted(unknown))}")
    settings = {**picture.settings, **request}
    for name, usual in picture.settings.items():
        if type(settings[name]) is not type(usual):
            sys.exit(f"no {verb}: {name} is a {type(usual).__name__}, not {settings[name]!r}")
    path = Path(request.get("path") or Path(__file__).parents[2] / ".convbench" / f"{verb}.png")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.make(settings, path)
    except (*EXPECTED, Skip) as error:
        text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
        sys.exit(f"no {verb}: {text or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(f"interrupted: no {verb} was drawn")
    print(f"the {verb} is {path}" if verb == "gallery" else f"the {verb} are {path}")
