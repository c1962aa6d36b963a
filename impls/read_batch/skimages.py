"""A tile's bands by scikit-image, for the implementations that read with it."""

from __future__ import annotations

import json
import re

import numpy as np
from skimage.io import imread

from impls.read_batch import tiff, tifffiles
from impls.read_batch.arguments import TileFormat, evident, require_compression

DESCRIPTION, SOFTWARE = 270, 305
PRIVATE = 32768  # tags from here on have a meaning to one program
# Copyright, IPTC, Photoshop, GeoTIFF, colour profile, EXIF, GPS, GDAL and RPC: no rule of tifffile's depends on them.
ORDINARY = {33432, 33550, 33723, 33922, 34264, 34377, 34665, 34675, 34735, 34736, 34737, 34853, 42112, 42113, 50844}
# Texts by which tifffile finds other pages, other files or another shape: its own, ImageJ's, and those of microscopes.
MEANING = re.compile(
    rb"[^!-~]*(\{|shape=|ImageJ=|SCIFIO=|Aperio |state\.|Label.Image|Probability_Image)"
    rb"|.*((OME|scn|DataObject)>|scanimage\.SI)",
    re.DOTALL,
)
PROGRAMS = re.compile(rb"[^!-~]*(SI\.|PerkinElmer|Philips|ScanOutputManager)|.*Ventana", re.DOTALL)


def pixels(path: str) -> tuple[np.ndarray, int, TileFormat]:
    """A tile as skimage.io gives it, the axis that holds its bands, and its format.

    Raises what tiff.check_file() and skimage do, and NotImplementedError where skimage.io would not read the tile alone, or
    its array would not show the axis; callers go through arguments.named().
    """
    with tiff.Tile(path) as tile:
        found = tiff.check_file(tile, (DESCRIPTION, SOFTWARE))
        require_compression(found.compression, "none", "deflate")
        bands, height, width = found.bands, found.height, found.width
        if not evident(bands, height, width):
            raise NotImplementedError("axes=ambiguous: only axes=evident is supported")
        _require_alone(path, found)
        if found.blank is not None:  # skimage.io does not tell tifffile, which reads underneath, what is left out
            array = tifffiles.checked_pixels(tile, found)
            return array, 0, tifffiles.tile_format(array)
        array = imread(tile)
    axis = {(bands, height, width): 0, (height, width, bands): 2}[array.shape]
    return array, axis, TileFormat(bands, height, width, array.dtype.name)


def _require_alone(path: str, found: tiff.Image) -> None:
    """Raise NotImplementedError if skimage.io would take more of a file than its first image, or more files."""
    if not path.lower().endswith((".tif", ".tiff")) or "*" in path or "?" in path:
        raise NotImplementedError(
            "a name that ends in neither .tif nor .tiff, or has * or ? in it: only others are supported"
        )
    if found.following or tiff.SUBDIRECTORIES in found.tags:
        raise NotImplementedError("several images in a file: only one is supported")
    if max(private := found.tags - ORDINARY) >= PRIVATE:
        raise NotImplementedError(f"private tag {max(private)}: only those of GeoTIFF, GDAL and EXIF are supported")
    description, software = found.texts
    if PROGRAMS.match(software) or (MEANING.match(description) and not _says_the_shape(description, found)):
        raise NotImplementedError("a description that says how to read the file: only other ones are supported")


def _says_the_shape(description: bytes, found: tiff.Image) -> bool:
    """Whether a description has tifffile's format and agrees with the tags."""
    shape = [found.height, found.width]
    shape = [*shape, found.bands] if found.together else [found.bands, *shape]
    try:
        said = json.loads(description.rstrip(b"\0"))
        return said.pop("shape") == shape and not said.keys() - {"axes"}
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return False
