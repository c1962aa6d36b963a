"""Checks the arguments of decode_jpeg, and the JPEGs and regions of preprocess."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple

from impls import checks
from impls.decode_jpeg.jpeg import BadImage, reduced, shape

SCALES = (1, 2, 4, 8)


class Region(NamedTuple):
    """A rectangle of an image, in pixels."""

    top: int
    left: int
    height: int
    width: int


def checker(arrays: str, limits: Mapping[str, Any], unchecked: Callable[..., Any] = checks.together) -> Callable[..., Any]:
    """Make the check for one implementation, which calls `unchecked` with decode_jpeg's arguments in one form.

    The form: jpegs as a list of bytes, regions as a list of Region, the whole of an image if none is given.
    """
    if arrays != "numpy":
        raise ValueError(f'arrays must be "numpy": decode_jpeg returns NumPy arrays, not those of {arrays}')
    checks.require_limits(limits, "scale", "dtype")

    def decode_jpeg(jpegs: Sequence[bytes], regions: Any = None, scale: int = 1, workers: int = 1) -> Any:
        images, scale, workers = require_jpegs(jpegs), _scale(scale), _workers(workers)
        sizes = require_sizes(images, scale)
        found = [Region(0, 0, *size) for size in sizes] if regions is None else require_regions(regions, sizes)
        if limits and (reason := checks.outside(limits, {"scale": scale, "dtype": "uint8"})):
            raise NotImplementedError(reason)
        checks.require_memory(3 * sum(region.height * region.width for region in found), f"the pixels of {len(found)} images")
        return unchecked(images, found, scale, workers)

    return decode_jpeg  # by this name, Python's own message about a missing argument names the operation


def unsupported(
    limits: Mapping[str, Any],
    image_shape: tuple[int, int],
    region_shape: tuple[int, int] | None = None,
    scale: int = 1,
    workers: int = 1,
    dtype: Any = "uint8",
) -> str | None:
    """Return which argument is outside `limits`, or None. Raises as a call would for unsupported arguments.

    image_shape: height and width in pixels; region_shape: those of the region in the reduced image. dtype: not looked at,
    for pixels are uint8 everywhere.
    """
    scale = _scale(scale)
    _workers(workers)
    _require_pixels(0, image_shape, scale)
    image = reduced(image_shape, scale)
    require_inside(0, Region(0, 0, *(region_shape or image)), image)
    return checks.outside(limits, {"scale": scale, "dtype": "uint8"})


def require_jpegs(jpegs: Any) -> list[bytes]:
    """The JPEGs as a list of bytes. Raises TypeError or ValueError for anything else."""
    if isinstance(jpegs, (bytes, bytearray, str)) or not isinstance(jpegs, Sequence):
        raise TypeError(f"jpegs must be a list of bytes, not {type(jpegs).__name__}")
    if not len(jpegs):
        raise ValueError("jpegs is empty; a batch has at least one image")
    for i, jpeg in enumerate(jpegs):
        if not isinstance(jpeg, (bytes, bytearray)):
            raise TypeError(f"jpegs[{i}] must be the bytes of a JPEG, not {type(jpeg).__name__}")
    return [bytes(jpeg) for jpeg in jpegs]


def require_sizes(jpegs: list[bytes], scale: int = 1) -> list[tuple[int, int]]:
    """Height and width of each image at 1 / scale.

    Raises BadImage, which names it, for a faulty one, and ValueError for a scale that leaves less than a pixel.
    """
    found = []
    for i, jpeg in enumerate(jpegs):
        try:
            image = shape(jpeg)
        except BadImage as error:
            raise BadImage(f"jpegs[{i}] {error}") from None
        _require_pixels(i, image, scale)
        found.append(reduced(image, scale))
    return found


def require_regions(regions: Any, images: list[tuple[int, int]]) -> list[Region]:
    """The region of each image of these sizes. Raises TypeError or ValueError for invalid regions."""
    try:
        found = [Region(*map(index, region)) for region in regions]
    except TypeError:
        raise TypeError("regions must be rows of four integers: top, left, height, width") from None
    if len(found) != len(images):
        raise ValueError(f"regions must have a row for each of the {len(images)} images, not {len(found)}")
    for i, (region, image) in enumerate(zip(found, images, strict=True)):
        require_inside(i, region, image)
    return found


def _require_pixels(i: int, image: tuple[int, int], scale: int) -> None:
    if min(image) < scale:
        raise ValueError(f"scale must be at most the {min(image)} pixels of jpegs[{i}]'s shorter side, not {scale}")


def require_inside(i: int, region: Region, image: tuple[int, int]) -> None:
    """Raise ValueError for region i if it is empty or does not lie inside an image of this height and width."""
    if min(region.height, region.width) < 1:
        raise ValueError(f"regions[{i}] must hold at least one pixel, not {region.height} x {region.width}")
    bottom, right = region.top + region.height, region.left + region.width
    if min(region.top, region.left) < 0 or bottom > image[0] or right > image[1]:
        raise ValueError(
            f"regions[{i}], rows {region.top} to {bottom} and columns {region.left} to {right}, lies outside its image of "
            f"{image[0]} x {image[1]} pixels"
        )


def _scale(scale: Any) -> int:
    if isinstance(scale, bool) or scale not in SCALES:
        raise ValueError(f"scale must be 1, 2, 4 or 8, not {scale!r}")
    return int(scale)


def _workers(workers: Any) -> int:
    try:
        found = index(workers)
    except TypeError:
        raise TypeError(f"workers must be an integer, not {workers!r}") from None
    if found < 1:
        raise ValueError(f"workers must be at least 1, not {found}")
    return found
