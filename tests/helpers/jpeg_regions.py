"""Shared by the tests of decode_jpeg: its implementations, and regions of images."""

import functools

import pytest
from hypothesis import strategies as st

import impls
from impls.decode_jpeg.arguments import Region

CPU = impls.names("decode_jpeg", "cpu")
each = pytest.mark.parametrize("name", CPU)


@functools.cache
def load(name):
    try:
        return impls.load(name, "decode_jpeg")
    except impls.Unavailable as error:
        pytest.skip(str(error))


@st.composite
def regions(draw, height, width):
    """A region of an image of this size."""
    top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
    return Region(top, left, draw(st.integers(1, height - top)), draw(st.integers(1, width - left)))


def part(pixels, region):
    return pixels[region.top : region.top + region.height, region.left : region.left + region.width]
