"""Draws the requested picture (gallery, shifts, curves, ladder, stages of preprocess) and describes it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import Skip
from benchmarks.harness import cell
from benchmarks.timing import threads
from benchmarks.workloads import digits, eurosat

EXPECTED = (ValueError, TypeError, LookupError, ImportError, MemoryError, OSError)


@dataclass(frozen=True)
class Picture:
    """The settings of a request with their defaults, and the function that draws it."""

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


def shifts(settings: dict[str, Any], path: Path) -> None:
    """The photograph after every step of a convolution by shifted images."""
    from benchmarks.pictures import shifts

    shifts.draw(shifts.pictures(settings["filter"]), f"{settings['filter']} by scaled images that are shifted", path)


def curves(settings: dict[str, Any], path: Path) -> None:
    """Loss and accuracy while training, by several implementations of train_step."""
    from benchmarks.pictures import curves

    functions, lacking = curves.loaded(settings["names"] or curves.SHOWN, settings["threads"])
    for name, reason in lacking.items():
        print(f"{name}: {reason}", flush=True)
    if not functions:
        raise LookupError("none of the implementations can run here")
    found: list[curves.Curve] = []
    wanted = [settings[key] for key in ("network", "batch", "epochs", "seeds")]
    for step, steps, made in curves.train(functions, *wanted):
        print(f"\rstep {step} of {steps}", end="" if step < steps else "\n", flush=True)
        found = made
    for name, words in curves.in_words(found).items():
        print(f"{name}: {words}")
    data, counts = digits.load(), {key: settings[key] for key in ("epochs", "threads", "seeds")}
    units = {"epochs": "pass", "threads": "thread", "seeds": "start"}
    parts = [f'the "{settings["network"]}" network on {data.name}', f"batches of {settings['batch']}"]
    parts += [f"{count} {units[key]}{('es' if key == 'epochs' else 's') * (count > 1)}" for key, count in counts.items()]
    parts += [f"{min(len(data.test_labels), curves.MAX_TESTED)} test images"]
    curves.draw(found, ", ".join(parts), path)


def stages(settings: dict[str, Any], path: Path) -> None:
    """The time of preprocess by stage, image by image and in batches."""
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


def ladder(settings: dict[str, Any], path: Path) -> None:
    """How long a step of training takes by each rung of Cython, and of it update, products and fill."""
    from benchmarks.pictures import ladder
    from benchmarks.pictures.watched import Watched

    calls: dict[str, Callable[[], Any]] = {}
    found: dict[str, Watched] = {}
    for name in settings["names"] or ladder.RUNGS:
        try:
            calls |= ladder.prepare(name)
        except Skip as skip:
            print(f"{name}: {skip}", flush=True)
    if not calls:
        raise LookupError("none of the implementations can run here")
    for i, steps in enumerate(ladder.measure(calls), 1):
        found = steps
        print(f"\rround {i} of {ladder.ROUNDS}", end="" if i < ladder.ROUNDS else "\n", flush=True)
    for name, each in found.items():
        parts = ", ".join(f"{part} {1e3 * seconds:.3g}" for part, seconds in each.parts.items())
        print(
            f"{name}: {1e3 * each.seconds:.3g} ms a step, {ladder.STEPS * each.seconds:,.0f} s for {ladder.STEPS:,} steps; "
            f"watched ({each.cost:+.1%}): {parts}"
        )
    ladder.draw(found, f"train_step, {ladder.PROBLEM.label}, 1 thread: whole steps by what is compiled", path)


def tile_sheet(settings: dict[str, Any], path: Path) -> None:
    """Twenty-five tiles with the names of their classes."""
    from benchmarks.pictures import tile_sheet

    images, names = tile_sheet.chosen(settings["name"], settings["seed"])
    tile_sheet.draw(images, names, f"{len(names)} tiles of {eurosat.source()}, read by {settings['name']}", path)


def tile_curves(settings: dict[str, Any], path: Path) -> None:
    """Loss and accuracy on both halves while ResNet-18 is trained on tiles, by several readers."""
    from benchmarks.pictures import curves, tile_curves

    functions, lacking = curves.loaded(settings["names"] or tile_curves.SHOWN, settings["threads"], "train_tiles")
    for name, reason in lacking.items():
        print(f"{name}: {reason}", flush=True)
    if not functions:
        raise LookupError("none of the implementations can run here")
    found: list[tile_curves.Curve] = []
    wanted = [settings[key] for key in ("tiles", "passes", "workers")]
    for done, batches, made in tile_curves.train(functions, *wanted):
        print(f"\rbatch {done} of {batches}", end="" if done < batches else "\n", flush=True)
        found = made
    for curve in found:
        words = (
            f"{half}: loss {curve.losses[half][-1]:.3g}, {curve.accuracies[half][-1]:.1%}" for half in tile_curves.HALVES
        )
        print(f"{curve.name}: {curve.seconds[-1]:.3g} s; {'; '.join(words)} named rightly")
    parts = [f"ResNet-18 on 80 % of {settings['tiles']} tiles of {eurosat.source()}", f"batches of {tile_curves.BATCH}"]
    parts += [f"threads: {settings['threads']}", f"processes that read: {settings['workers']}"]
    tile_curves.draw(found, ", ".join(parts), path)


PICTURES = {
    "gallery": Picture({"names": []}, gallery),
    "shifts": Picture({"filter": "emboss"}, shifts),
    "curves": Picture({"names": [], "network": "text", **digits.schedule(), "seeds": 1, "threads": 1}, curves),
    "ladder": Picture({"names": []}, ladder),
    "stages": Picture({"names": [], "problem": "n1h480w640y120x160s128"}, stages),
    "tile_sheet": Picture({"name": "cpu.rasterio", "seed": 0}, tile_sheet),
    "tile_curves": Picture(
        {"names": [], "tiles": 1000, "passes": 2, "workers": 0, "threads": len(threads.cores())}, tile_curves
    ),
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
    if not path.suffix:  # matplotlib writes such a one under another name
        path = path.with_name(f"{path.name.rstrip('.')}.png")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.make(settings, path)
    except (*EXPECTED, Skip) as error:
        text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
        sys.exit(f"no {verb}: {text or type(error).__name__}")
    except KeyboardInterrupt:
        sys.exit(f"interrupted: no {verb} was drawn")
    print(f"the {verb.replace('_', ' ')} {'are' if verb.endswith('s') else 'is'} {path}")
