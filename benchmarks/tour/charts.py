"""Pictures of numbers as SVG in the colour of the text around it, for light and dark pages."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

INK = "#010203"  # stands for the colour of the text around the picture
COLOURS = ("#4c8bd0", "#f0883e", "#3fa35b", "#d9534f", "#9a6fd0", "#2aa5a0", "#b9865a", "#d0689f", "#8a8f98")
WIDTH = 5.6  # inches: on a phone, too, letters can be read
LINEAR = 12  # a linear scale shows ratios up to this; beyond it the scale is logarithmic
LOOK = {
    **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor"), INK),
    "axes.spines.top": False,
    "axes.spines.right": False,
    "font.size": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "convbench",  # the same numbers give the same file
}


@dataclass(frozen=True)
class Picture:
    """A picture for a page: an SVG element, or a data URL. words: what it shows."""

    content: str
    words: str


def svg(figure: Any, words: str) -> Picture:
    """A Matplotlib figure as an SVG element as wide as its place allows. Call it within look()."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = re.sub(r"<metadata>.*?</metadata>", "", file.getvalue(), flags=re.DOTALL)
    text = text[text.index("<svg") :].replace(INK, "currentColor")
    return Picture(re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', _opening(words), text, count=1), words)


def _opening(words: str) -> str:
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    return rf'<svg {spaces} \1 role="img" aria-label="{words}">'


def figure(width: float, height: float, **more: Any) -> Any:
    """A figure and its axes, in inches. Call it within look()."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, drawn.subplots(**more)


def look() -> Any:
    """The look of all pictures, as a context."""
    import matplotlib

    return matplotlib.rc_context(LOOK)


def data_url(content: bytes, kind: str) -> str:
    """A file within a page."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def png(drawn: Any, words: str) -> Picture:
    """A Matplotlib figure of photographs."""
    file = io.BytesIO()
    drawn.savefig(file, format="png", dpi=110)
    return Picture(data_url(file.getvalue(), "image/png"), words)


def dots(quartiles: Mapping[str, Sequence[float]], label: str, words: str) -> Picture:
    """A line for each name: its median, and from quartile to quartile, the shortest time on top."""
    from matplotlib.ticker import EngFormatter

    ranked = sorted(quartiles, key=lambda name: -quartiles[name][1])
    with look():
        drawn, axes = figure(WIDTH, 0.75 + 0.27 * len(ranked))
        medians = [quartiles[name][1] for name in ranked]
        wide = max(medians) > LINEAR * min(medians)
        start = min(medians) / 2 if wide else 0
        axes.hlines(ranked, start, medians, color=COLOURS[0], alpha=0.35, linewidth=5)
        for name in ranked:
            axes.plot(quartiles[name][::2], [name] * 2, color=COLOURS[0], linewidth=2)
        axes.plot(medians, ranked, "o", color=COLOURS[0], markersize=6)
        if wide:
            axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter("s"))
        axes.set_xlim(left=start)
        axes.set_ylim(-0.6, len(ranked) - 0.4)  # lines at the edges are as thick as the others
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        return svg(drawn, words)


def lines(series: Mapping[str, tuple[Sequence[float], Sequence[float]]], across: str, words: str) -> Picture:
    """A line for each name, of x and seconds, on logarithmic scales."""
    from matplotlib.ticker import EngFormatter

    with look():
        drawn, axes = figure(WIDTH, 3.4)
        for colour, (name, (x, y)) in zip(COLOURS * 2, series.items(), strict=False):
            axes.plot(x, y, "o-", color=colour, label=name, markersize=4)
        axes.set(xscale="log", yscale="log", xlabel=across)
        axes.yaxis.set_major_formatter(EngFormatter("s"))
        ticks = sorted({each for x, _ in series.values() for each in x})
        axes.set_xticks(ticks, [f"{each:g}" for each in ticks])
        axes.set_xticks([], minor=True)
        axes.legend(fontsize=8)
        return svg(drawn, words)


def stacks(bars: Mapping[str, Mapping[str, float]], label: str, words: str) -> Picture:
    """A bar for each name, of its parts one after the other, the first name on top."""
    present = list(dict.fromkeys(each for parts in bars.values() for each in parts))
    with look():
        drawn, axes = figure(WIDTH, 1.1 + 0.3 * len(bars))
        left = dict.fromkeys(bars, 0.0)
        for colour, kind in zip(COLOURS, present, strict=False):
            widths = [parts.get(kind, 0.0) for parts in bars.values()]
            axes.barh(list(bars), widths, left=list(left.values()), color=colour, label=kind, height=0.7)
            left = {name: left[name] + width for name, width in zip(bars, widths, strict=True)}
        axes.invert_yaxis()
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        drawn.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=min(5, len(present)), fontsize=8)
        return svg(drawn, words)
