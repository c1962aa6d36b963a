"""py-spy's flame graph with names in place of addresses, and a title with what was profiled."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

SVG = "http://www.w3.org/2000/svg"
FG = "http://github.com/jonhoo/inferno"  # attributes of py-spy's pictures beside those of SVG: where a frame lies, in stacks
PREFIXES = {"": SVG, "fg": FG, "xlink": "http://www.w3.org/1999/xlink"}
ADDRESS = re.compile(r"0x([0-9a-f]+) \((.*)\)")
PIXELS, LETTER = 1180, 7  # the width of all stacks, and of a letter

Code = tuple[int, int, str]  # where a function starts and ends, and its name


class Frame:
    """A function's rectangle, which reaches over the stacks from `start` to `end`."""

    def __init__(self, group: Element) -> None:
        self.group = group
        self.title, self.box, self.text = group
        self.name = (self.title.text or "").rpartition(" (")[0]
        self.start = int(self.box.get(f"{{{FG}}}x", 0))
        self.end = self.start + int(self.box.get(f"{{{FG}}}w", 0))
        self.parent: Frame | None = None

    def draw(self, stacks: int) -> None:
        """Give the rectangle the frame's name and width."""
        width = self.end - self.start
        letters = width * PIXELS // (stacks * LETTER)
        self.title.text = f"{self.name} ({width:,} samples, {width / stacks:.2%})"
        self.box.set("width", f"{width / stacks:.4%}")
        self.box.set(f"{{{FG}}}w", str(width))
        self.text.text = self.name if len(self.name) <= letters else f"{self.name[: letters - 2]}.." if letters > 4 else ""


def stacks(svg: str) -> int:
    """How many stacks a flame graph is made of; 0 where py-spy saw none."""
    found = re.search(r'total_samples="(\d+)"', svg)
    return int(found[1]) if found else 0


def label(svg: str, title: str, compiled: Sequence[Code]) -> str:
    """The flame graph under a title, with compiled functions by name.

    Code that was compiled at run time, or has lost its symbols, is an address to py-spy, and every address a frame of its
    own. Here it gets its name from `compiled`, or its file's, and neighbours with one name become one frame.
    """
    for prefix, namespace in PREFIXES.items():
        ElementTree.register_namespace(prefix, namespace)
    root = ElementTree.fromstring(svg)
    for text in root.iter(f"{{{SVG}}}text"):
        if text.get("id") == "title":
            text.text = title
    picture = next(each for each in root.iter(f"{{{SVG}}}svg") if each.get("id") == "frames")
    rows: dict[int, list[Frame]] = {}
    for group in picture:
        rows.setdefault(int(group[1].get("y", 0)), []).append(Frame(group))
    above: list[Frame] = []
    for _, row in sorted(rows.items()):
        kept: list[Frame] = []
        for frame in sorted(row, key=lambda frame: frame.start):
            frame.parent = next((other for other in above if other.start <= frame.start < other.end), None)
            if named := _name(frame.name, compiled):
                frame.name = named
                last = kept[-1] if kept else frame
                if (last.name, last.end, last.parent) == (named, frame.start, frame.parent):
                    last.end = frame.end
                    picture.remove(frame.group)
                    frame = kept.pop()
                frame.draw(stacks(svg))
            kept.append(frame)
        above = kept
    return ElementTree.tostring(root, encoding="unicode")


def _name(name: str, compiled: Sequence[Code]) -> str | None:
    """The name of a frame that is an address; None for one that has a name."""
    match = ADDRESS.fullmatch(name)
    if match is None:
        return None
    address, file = int(match[1], 16), match[2]
    known = next((name for start, end, name in compiled if start <= address < end), None)
    return known or f"no symbol ({'compiled at run time' if file == '?' else file})"
