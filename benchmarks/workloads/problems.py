"""Problems are data: the shape of a convolution, its work, and its source.

A label spells the shape: n1c64h56w56k64r3s3p1 is input (1, 64, 56, 56), weight (64, 64, 3, 3), padding 1. Optional parts
follow in this order: t2 (stride), p1 (padding), d2 (dilation), g64 (groups). Named sets lie in sets/*.toml.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = Path(__file__).parent / "sets"
LABEL = re.compile(
    r"n(?P<n>\d+)c(?P<c>\d+)h(?P<h>\d+)w(?P<w>\d+)k(?P<k>\d+)r(?P<r>\d+)s(?P<s>\d+)"
    r"(?:t(?P<t>\d+))?(?:p(?P<p>\d+(?:x\d+)?))?(?:d(?P<d>\d+))?(?:g(?P<g>\d+))?"
)


@dataclass(frozen=True)
class Problem:
    """One convolution: input (N, C, H, W), weight (K, C/g, R, S), stride, padding (vertical, horizontal), dilation, groups.

    data says what the input shows: "random" (uniform in [-1, 1]) or "photo" (a photograph, for filters); `filter` names
    the weight of a filter problem, otherwise it is random too.
    """

    n: int
    c: int
    h: int
    w: int
    k: int
    r: int
    s: int
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    dilation: int = 1
    groups: int = 1
    dtype: str = "float32"
    data: str = "random"
    filter: str | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for a problem that has no output or whose channels do not fit its groups."""
        if self.groups < 1 or self.stride < 1 or self.c % self.groups or self.k % self.groups:
            raise ValueError(f"{self.label}: channels must be multiples of groups, and stride at least 1")
        if min(self.output_shape[1:]) < 1:
            raise ValueError(f"{self.label}: the kernel is larger than the padded image")

    @classmethod
    def parse(cls, label: str, **more: Any) -> Problem:
        """Read a label. Raises ValueError that shows what one looks like."""
        match = LABEL.fullmatch(label)
        if match is None:
            raise ValueError(f"{label!r} is not a problem's label; one looks like n1c64h56w56k64r3s3t2p1d1g1")
        n, c, h, w, k, r, s = (int(match[name]) for name in "nchwkrs")
        vertical, _, horizontal = (match["p"] or "0").partition("x")
        return cls(
            n,
            c,
            h,
            w,
            k,
            r,
            s,
            stride=int(match["t"] or 1),
            padding=(int(vertical), int(horizontal or vertical)),
            dilation=int(match["d"] or 1),
            groups=int(match["g"] or 1),
            **more,
        )

    @property
    def label(self) -> str:
        """The shape in one word."""
        text = f"n{self.n}c{self.c}h{self.h}w{self.w}k{self.k}r{self.r}s{self.s}"
        if self.stride != 1:
            text += f"t{self.stride}"
        text += self._padding_text
        if self.dilation != 1:
            text += f"d{self.dilation}"
        if self.groups != 1:
            text += f"g{self.groups}"
        return text

    @property
    def _padding_text(self) -> str:
        vertical, horizontal = self.padding
        both = f"{vertical}" if vertical == horizontal else f"{vertical}x{horizontal}"
        return f"p{both}" if any(self.padding) else ""

    @property
    def input_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.c, self.h, self.w

    @property
    def weight_shape(self) -> tuple[int, int, int, int]:
        return self.k, self.c // self.groups, self.r, self.s

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        p = (self.h + 2 * self.padding[0] - self.dilation * (self.r - 1) - 1) // self.stride + 1
        q = (self.w + 2 * self.padding[1] - self.dilation * (self.s - 1) - 1) // self.stride + 1
        return self.n, self.k, p, q

    @property
    def taps(self) -> int:
        """Products summed for one output: (C/g) R S."""
        return self.c // self.groups * self.r * self.s

    @property
    def outputs(self) -> int:
        """Elements of the output: N K P Q."""
        n, k, p, q = self.output_shape
        return n * k * p * q

    @property
    def flops(self) -> int:
        """Nominal work: 2 N K P Q (C/g) R S, taps in the padding counted (CUTLASS's and torch's convention)."""
        return 2 * self.outputs * self.taps

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return {"float32": 4, "float64": 8}[self.dtype]

    @property
    def bytes(self) -> int:
        """Minimum traffic: input, weight and output once each."""
        n, c, h, w = self.input_shape
        k, channels, r, s = self.weight_shape
        return self.itemsize * (n * c * h * w + k * channels * r * s + self.outputs)

    @property
    def arguments(self) -> dict[str, Any]:
        """The keyword arguments of conv2d."""
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation, "groups": self.groups}

    def describe(self) -> dict[str, Any]:
        """The attributes stored with results, as an attribute of the benchmark function."""
        return {
            "label": self.label,
            "output": list(self.output_shape),
            "flops": self.flops,
            "bytes": self.bytes,
            "dtype": self.dtype,
        }


class SameSize(Problem):
    """A problem with padding="same" and stride 1 as in torch, also for kernels of even size.

    padding: what lies above and on the left; on the other sides lies one row or column more if there is no middle.
    """

    @property
    def _padding_text(self) -> str:
        return "psame"

    @property
    def output_shape(self) -> tuple[int, int, int, int]:
        return self.n, self.k, self.h, self.w

    @property
    def arguments(self) -> dict[str, Any]:
        return {**super().arguments, "padding": "same"}


def load_set(name: str) -> dict[str, Problem]:
    """Read sets/<name>.toml: {problem's name in the set: problem}, in the file's order."""
    with (SETS / f"{name}.toml").open("rb") as file:
        content = tomllib.load(file)
    shared = content.get("shared", {})
    found: dict[str, Problem] = {}
    for entry in content["problem"]:
        entry = {**shared, **entry}
        label = entry.pop("label")
        title = entry.pop("name", label)
        entry.pop("note", None)
        found[title] = Problem.parse(label, **entry)
    return found
