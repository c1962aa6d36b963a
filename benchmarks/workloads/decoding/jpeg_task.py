"""Decoding JPEGs as a task: bytes in, pixels out, whole images or a region of each, reduced or not."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import jpegs
from benchmarks.workloads.decoding import jpeg_reference
from benchmarks.workloads.jpegs import Frames
from benchmarks.workloads.tasks import Task, once_more

DIFFERENT = 4  # images of a batch; they come again in a larger one, for a reference takes a hundred times a decoder's time
# How far a value may be from the reference. A decoder rounds a component, and colours again where it interpolates them:
# 0.56 and 1.06 with an integer transform; blue is luma + 1.772 times a colour, rounded.
MAX_ERROR = 0.56 + 1.772 * 1.06 + 0.5
MAX_MEAN_ERROR = 0.6  # three roundings of 0.25 each, of which two are of one colour in part
# Of an inverse transform, 10 a sample where 8 values take 40, and 1.5 samples a pixel; from luma and colours to red, green
# and blue 7 (Loeffler, Ligtenberg and Moschytz 1989; T.871).
OPERATIONS = 10 * 1.5 + 7


@dataclass(frozen=True)
class Pictures:
    """n JPEGs of h x w pixels reduced by the scale r, of each a region of y x x. A label spells that: n4h480w640y480x640r1.

    workers: None for as many as threads.
    """

    n: int
    height: int
    width: int
    region_height: int
    region_width: int
    scale: int = 1
    workers: int | None = None
    dtype: str = "uint8"

    @classmethod
    def whole(cls, n: int, height: int, width: int, scale: int = 1) -> Pictures:
        """Images of which all is wanted."""
        return cls(n, height, width, -(-height // scale), -(-width // scale), scale)

    @classmethod
    def parse(cls, label: str) -> Pictures:
        """Read a label. Raises ValueError that shows what one looks like."""
        match = re.fullmatch("".join(rf"{key}([1-9]\d*)" for key in "nhwyxr"), label)
        n, height, width, high, wide, scale = map(int, match.groups()) if match else (0,) * 6
        found = cls(n, height, width, high, wide, scale)
        if found.scale not in (1, 2, 4, 8) or not match or not found.fits:
            raise ValueError(
                f"{label!r} is not a label of pictures; one looks like n4h480w640y240x320r2, its region in the image at 1/r"
            )
        return found

    @property
    def fits(self) -> bool:
        height, width = self.reduced
        return self.region_height <= height and self.region_width <= width and min(self.height, self.width) >= self.scale

    @property
    def reduced(self) -> tuple[int, int]:
        return -(-self.height // self.scale), -(-self.width // self.scale)

    @property
    def label(self) -> str:
        numbers = self.n, self.height, self.width, self.region_height, self.region_width, self.scale
        return "".join(f"{key}{number}" for key, number in zip("nhwyxr", numbers, strict=True))


class DecodeJpeg(Task):
    """decode_jpeg(jpegs, regions, scale, workers): the pixels of a region of each image."""

    baseline = "cpu.opencv"

    def __init__(self, operation: str, problem: Pictures) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Pictures:
        return Pictures.parse(label)

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """JPEGs and regions, None if all is wanted. Raises Missing."""
        few = min(self.problem.n, DIFFERENT)
        height, width = self.problem.reduced
        high, wide = self.problem.region_height, self.problem.region_width
        made = jpegs.jpegs(Frames(few, self.problem.height, self.problem.width, 1, 1, 1))
        places = None if (high, wide) == (height, width) else jpegs.regions(Frames(few, height, width, high, wide, 1))
        return tuple(each and [each[i % few] for i in range(self.problem.n)] for each in (made, places))

    def describe(self) -> dict[str, Any]:
        """FLOPs: of transforms and colours of what is wanted. Bytes: the pixels written."""
        pixels = self.problem.n * self.problem.region_height * self.problem.region_width
        return {
            "label": self.problem.label,
            "output": [self.problem.n, self.problem.region_height, self.problem.region_width, 3],
            "flops": OPERATIONS * pixels,
            "bytes": 3 * pixels,
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n * self.problem.height * self.problem.width, "pixels")}

    def unsupported(self, function: Any) -> str | None:
        image = self.problem.height, self.problem.width
        region = self.problem.region_height, self.problem.region_width
        return function.unsupported(image, region, self.problem.scale, self.problem.workers or 1, dtype=self.problem.dtype)

    def recall(self) -> None:
        """Make the images; a reference takes less than a second an image."""
        self.arrays  # noqa: B018

    def restore(self) -> None:
        """Do nothing: bytes cannot be written to."""

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. After timing, verify looks at the last timed pixels, and at those of the images in another order."""
        images, places = self.arrays
        decode = functools.partial(function, scale=self.problem.scale, workers=self.problem.workers or max(pools.values()))
        start = perf_counter()
        output = decode(images, places)
        called = perf_counter() - start
        self._judge(output, 0)

        def verify(last: Any) -> dict[str, Any]:
            facts = self._judge(last, 0)
            turned = places and places[1:] + places[:1]
            other = functools.partial(decode, images[1:] + images[:1], turned)
            judge = functools.partial(self._judge, first=1)
            return {**once_more(function, other, judge, "of images in another order"), **facts}

        return PreparedCell.of(function, functools.partial(decode, images, places), verify, pools, called)

    def _judge(self, output: Any, first: int) -> dict[str, float]:
        """Compare pixels with the reference; raise WrongAnswer or return how far they are from it, in grey levels."""
        n, shape = self.problem.n, (self.problem.region_height, self.problem.region_width, 3)
        if len(output) != n:
            raise WrongAnswer(f"there are {len(output)} images, not {n}")
        largest = mean = 0.0
        for i, pixels in enumerate(output):
            if not isinstance(pixels, np.ndarray) or pixels.shape != shape or pixels.dtype != np.uint8:
                found = getattr(pixels, "shape", None), str(getattr(pixels, "dtype", type(pixels).__name__))
                raise WrongAnswer(f"image {i} has shape {found[0]} and dtype {found[1]}, not {shape} and uint8")
            expected = self._expected((i + first) % n)
            errors = np.abs(pixels - expected)
            y, x, c = np.unravel_index(int(np.argmax(errors)), shape)
            if errors[y, x, c] > MAX_ERROR:
                raise WrongAnswer(
                    f"image {i} is {pixels[y, x, c]} at y={int(y)}, x={int(x)}, channel {int(c)}, not {expected[y, x, c]:.1f}"
                )
            if errors.mean() > MAX_MEAN_ERROR:
                raise WrongAnswer(f"image {i} is {errors.mean():.2f} from the reference on average, over {MAX_MEAN_ERROR}")
            largest, mean = max(largest, float(errors[y, x, c])), max(mean, float(errors.mean()))
        return {"largest_error": largest, "mean_error": mean}

    def _expected(self, i: int) -> np.ndarray:
        images, places = self.arrays
        top, left, height, width = places[i] if places else (0, 0, *self.problem.reduced)
        return _reference(images[i], self.problem.scale)[top : top + height, left : left + width]


@functools.lru_cache(DIFFERENT)
def _reference(jpeg: bytes, scale: int) -> np.ndarray:
    return jpeg_reference.decode(jpeg, scale)
