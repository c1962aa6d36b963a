"""Preparing regions of JPEGs for a network, and its answer for the images, as a task: bytes in, masks out."""

from __future__ import annotations

import functools
import io
import re
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.errors import Missing, WrongAnswer
from benchmarks.timing.prepared_cell import PreparedCell
from benchmarks.workloads import inputs, oracle
from benchmarks.workloads.problems import Problem
from benchmarks.workloads.tasks import Task, once_more

QUALITY = 90  # of the JPEGs: what cameras and editors write
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # the operation's defaults
# In a network's place a filter whose sum is not zero and which differs by colour and direction, so that a wrong mean, order
# of colours or side shows.
WEIGHT = (np.array(inputs.FILTERS["emboss"], np.float32) * np.array([1, 0.5, -0.8], np.float32)[:, None, None])[None]
THRESHOLD = 0.5
# Of a response, in units of the sum of |weight * value|: two interpolations, a normalisation and 27 products in float32.
ROUNDINGS = 64.0


@dataclass(frozen=True)
class Frames:
    """n JPEGs of h x w pixels, of each a region of y x x, resized to patches of s x s. A label spells all that.

    n4h480w640y120x160s128: four images, a sixteenth of each.
    """

    n: int
    height: int
    width: int
    region_height: int
    region_width: int
    size: int
    dtype: str = "float32"

    @classmethod
    def parse(cls, label: str) -> Frames:
        """Read a label. Raises ValueError that shows what one looks like."""
        match = re.fullmatch("".join(rf"{key}([1-9]\d*)" for key in "nhwyxs"), label)
        n, height, width, high, wide, size = map(int, match.groups()) if match else (0,) * 6
        found = cls(n, height, width, high, wide, size)
        if match is None or found.region_height > found.height or found.region_width > found.width:
            raise ValueError(
                f"{label!r} is not a label of frames; one looks like n4h480w640y120x160s128, its region inside its image"
            )
        return found

    @property
    def label(self) -> str:
        numbers = self.n, self.height, self.width, self.region_height, self.region_width, self.size
        return "".join(f"{key}{number}" for key, number in zip("nhwyxs", numbers, strict=True))

    def images(self) -> list[bytes]:
        """The JPEGs. Raises Missing."""
        return jpegs(self)

    def places(self) -> list[tuple[int, int, int, int]]:
        """The region of each: top, left, height and width."""
        return regions(self)


class Preprocess(Task):
    """preprocess(jpegs, regions, weight, threshold): a region of each image convolved, and what is above the threshold."""

    baseline = "cpu.opencv"

    def __init__(self, operation: str, problem: Frames) -> None:
        self.operation, self.problem = operation, problem

    @staticmethod
    def parse(label: str) -> Frames:
        return Frames.parse(label)

    @functools.cached_property
    def arrays(self) -> tuple[Any, ...]:
        """JPEGs and regions; the called function also has the weight and the threshold. Raises Missing."""
        return self.problem.images(), self.problem.places()

    def describe(self) -> dict[str, Any]:
        """FLOPs: of the convolution alone. Bytes: the regions' pixels read, and the masks written."""
        n, size = self.problem.n, self.problem.size
        return {
            "label": self.problem.label,
            "output": [n, self.problem.height, self.problem.width],
            "flops": 2 * n * size**2 * WEIGHT.size,
            "bytes": n
            * (3 * self.problem.region_height * self.problem.region_width + self.problem.height * self.problem.width),
            "dtype": self.problem.dtype,
        }

    def work(self) -> dict[str, tuple[float, str]]:
        return {"outputs": (self.problem.n * self.problem.height * self.problem.width, "pixels")}

    def unsupported(self, function: Any) -> str | None:
        image = self.problem.height, self.problem.width
        region = self.problem.region_height, self.problem.region_width
        return function.unsupported(image, region, WEIGHT.shape[2:], self.problem.size)

    def recall(self) -> None:
        """Make the images; the references take no longer to compute than to read."""
        self.arrays  # noqa: B018

    def restore(self) -> None:
        """Do nothing: bytes cannot be written to, and the weight is judged with the masks."""

    def check(self, function: Any, pools: dict[str, int]) -> PreparedCell:
        """See Task. After timing, verify looks at the last timed masks, and at those of the images in another order."""
        images, places = self.arrays
        call = functools.partial(function, images, places, WEIGHT, THRESHOLD, self.problem.size)
        start = perf_counter()
        output = call()
        called = perf_counter() - start
        self._judge(output, 0)

        def verify(last: Any) -> dict[str, Any]:
            facts = self._judge(last, 0)
            turned = images[1:] + images[:1], places[1:] + places[:1]
            other = functools.partial(function, *turned, -WEIGHT, THRESHOLD, self.problem.size)
            changed = "of images in another order and the weight negated"
            return {**once_more(function, other, functools.partial(self._judge, first=1, sign=-1), changed), **facts}

        return PreparedCell.of(function, call, verify, pools, called)

    def _judge(self, output: Any, first: int, sign: int = 1) -> dict[str, float]:
        """Compare masks with the definition; raise WrongAnswer or say how many pixels were too near to call."""
        n, image = self.problem.n, (self.problem.height, self.problem.width)
        if len(output) != n:
            raise WrongAnswer(f"there are {len(output)} masks, not {n}")
        near = 0
        for i, mask in enumerate(output):
            if not isinstance(mask, np.ndarray) or mask.shape != image or mask.dtype != np.uint8:
                found = getattr(mask, "shape", None), str(getattr(mask, "dtype", type(mask).__name__))
                raise WrongAnswer(f"mask {i} has shape {found[0]} and dtype {found[1]}, not {image} and uint8")
            margins, region = self._margins((i + first) % n, sign)
            top, left, height, width = region
            inside = mask[top : top + height, left : left + width]
            outside = mask.copy()
            outside[top : top + height, left : left + width] = 0
            if outside.any():
                y, x = np.unravel_index(int(np.argmax(outside)), image)
                raise WrongAnswer(f"mask {i} is {outside[y, x]} at y={y}, x={x}, outside its region")
            wrong = (inside != np.where(margins > 0, 255, 0)) & (abs(margins) > 1)
            if wrong.any() or not np.isin(inside, (0, 255)).all():
                y, x = np.unravel_index(int(np.argmax(wrong | ~np.isin(inside, (0, 255)))), inside.shape)
                raise WrongAnswer(
                    f"mask {i} is {inside[y, x]} at y={y + top}, x={x + left}, where the response is "
                    f"{abs(margins[y, x]):.2g} error bounds {'above' if margins[y, x] > 0 else 'below'} the threshold"
                )
            near += int((abs(margins) <= 1).sum())
        return {"too_near_to_call": near / (n * self.problem.region_height * self.problem.region_width)}

    def _margins(self, i: int, sign: int) -> tuple[np.ndarray, tuple[int, int, int, int]]:
        """How far each of a region's pixels is above the threshold, in error bounds, and the region."""
        response, bound = self._responses[i]
        return (sign * response - THRESHOLD) / bound, self.arrays[1][i]

    @functools.cached_property
    def _responses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        from PIL import Image  # imported here, because asv imports every file of the suite

        images, places = self.arrays
        found = []
        for jpeg, region in zip(images, places, strict=True):
            pixels = np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"))
            found.append(reference(pixels, region, self.problem.size))
        return found


@functools.cache
def _photo() -> np.ndarray:
    """The photograph (427, 640, 3) in uint8. Raises Missing."""
    (photo,), _ = inputs.make(Problem(1, 3, 427, 640, 3, 3, 3, groups=3, data="photo", filter="identity"))
    return np.rint((photo.transpose(1, 2, 0) + 1) * 127.5).clip(0, 255).astype(np.uint8)


def jpegs(problem: Frames) -> list[bytes]:
    """The photograph, enlarged, each time turned by another number of columns. Raises Missing."""
    try:
        from PIL import Image
    except ImportError as error:
        raise Missing("JPEGs are made with Pillow: pip install pillow") from error
    found = []
    for i in range(problem.n):
        turned = Image.fromarray(np.roll(_photo(), 37 * i, axis=1)).resize((problem.width, problem.height))
        file = io.BytesIO()
        turned.save(file, "JPEG", quality=QUALITY)
        found.append(file.getvalue())
    return found


def regions(problem: Frames) -> list[tuple[int, int, int, int]]:
    """Top, left, height and width for each image, anywhere in it; those of the first images are the same whatever n is."""
    size = problem.region_height, problem.region_width
    last = problem.height - size[0], problem.width - size[1]
    places = np.random.default_rng(0).integers(0, last, (problem.n, 2), endpoint=True)
    return [(int(top), int(left), *size) for top, left in places]


def reference(pixels: np.ndarray, region: tuple[int, int, int, int], size: int) -> tuple[np.ndarray, np.ndarray]:
    """The response at each of a region's pixels in float64, and its error bound: the definition of impls/preprocess."""
    top, left, height, width = region
    longest = max(height, width)
    rows, columns = (max(1, int(side * size / longest + 0.5)) for side in (height, width))
    crop = pixels[top : top + height, left : left + width].astype(np.float64)
    # Interpolation as a product with a matrix for each axis.
    matrices = _interpolation(height, rows), _interpolation(width, columns)
    part = np.einsum("yh,hwc,xw->cyx", matrices[0], crop, matrices[1], optimize=True)
    part = (part / 255 - np.array(MEAN)[:, None, None]) / np.array(STD)[:, None, None]
    padded = np.zeros((3, size + 2, size + 2))
    padded[:, 1 : rows + 1, 1 : columns + 1] = part
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    response = np.einsum("cyxrs,crs->yx", windows, WEIGHT[0].astype(np.float64))
    magnitude = np.einsum("cyxrs,crs->yx", abs(windows) + 1 / min(STD), abs(WEIGHT[0]).astype(np.float64))
    places = np.ix_(
        *(((np.arange(side) + 0.5) * count / side).astype(int) for side, count in ((height, rows), (width, columns)))
    )
    return response[places], ROUNDINGS * oracle.UNIT["float32"] * magnitude[places]


def _interpolation(size: int, wanted: int) -> np.ndarray:
    """A matrix (wanted, size) whose rows are the shares that pixels have in a place between them."""
    places = np.clip((np.arange(wanted) + 0.5) * size / wanted - 0.5, 0, size - 1)
    return np.clip(1 - abs(places[:, None] - np.arange(size)), 0, 1)
