"""decode_jpeg on JPEGs with false claims about their content, and a compiled decoder that never leaves its array."""

import contextlib
import itertools
import sys
from unittest import mock

import numpy as np
import pytest
from cases import case
from damage import jpegs
from hostile_jpegs import CUT, READABLE, UNREADABLE, arithmetic, many_scans
from hypothesis import given, settings
from hypothesis import strategies as st
from jpeg_regions import each, load, part, regions
from jpegs import GOOD, encoded

import impls
from impls.decode_jpeg import jpeg as markers
from impls.decode_jpeg.arguments import Region
from impls.decode_jpeg.jpeg import BadImage


@each
def test_a_file_that_says_one_thing_and_holds_another_is_refused(name):
    for kind, (jpeg, words) in UNREADABLE.items():
        with case(kind), pytest.raises(BadImage, match=rf"^jpegs\[1\] {words}"):
            load(name)([GOOD, jpeg])


@each
def test_whatever_else_a_jpeg_may_hold_is_passed_over(name):
    (known,) = load(name)([GOOD])
    for kind, jpeg in READABLE.items():
        with case(kind):
            assert np.array_equal(load(name)([jpeg], [(2, 1, 5, 8)])[0], known[2:7, 1:9])


@each
def test_arithmetic_coding_and_many_scans_are_read(name):
    grey, scans = load(name)([arithmetic(), many_scans(80)])
    assert (grey == 128).all()
    assert not scans.any()


@each
def test_damaged_images_give_one_error_or_pixels(name):
    function = load(name)

    @settings(max_examples=200, deadline=None)
    @given(jpeg=jpegs(), scale=st.sampled_from([1, 2, 4, 8]), data=st.data())
    def ends_well(jpeg, scale, data):
        region, known = Region(0, 0, 1, 1), "is damaged: "
        try:
            image = markers.shape(jpeg)
            scale = scale if min(image) >= scale else 1
            region = data.draw(regions(*markers.reduced(image, scale)))
        except BadImage as error:
            known = str(error)
        try:
            (found,) = function([jpeg], [region], scale)
            found = found.shape
        except BadImage as error:
            found = str(error)
        assert found == (region.height, region.width, 3) or found.startswith(f"jpegs[0] {known}")

    ends_well()


def kernel():
    load("cpu.libjpeg_region")
    from impls.decode_jpeg.cpu import _cython_jpeg

    return _cython_jpeg.decode


@settings(max_examples=200, deadline=None)
@given(jpeg=jpegs(), scale=st.sampled_from([1, 2, 4, 8]), data=st.data())
def test_nothing_is_written_outside_of_the_array(jpeg, scale, data):
    decode = kernel()
    image = data.draw(st.integers(1, 70)), data.draw(st.integers(1, 70))  # whatever the file says
    with contextlib.suppress(BadImage):
        image = markers.reduced(markers.shape(jpeg), scale) if data.draw(st.booleans()) else image
    region = data.draw(regions(*image))
    size, before = 3 * region.height * region.width, 4096
    memory = np.full(size + 2 * before, 77, np.uint8)
    target = memory[before : before + size].reshape(region.height, region.width, 3)
    with contextlib.suppress(ValueError):
        decode(jpeg, image, region, scale, target)
    assert (memory[:before] == 77).all()
    assert (memory[before + size :] == 77).all()


def test_the_compiled_decoder_checks_what_it_is_given():
    decode = kernel()
    target = np.zeros((2, 3, 3), np.uint8)
    outside = [(7, 0, 2, 3), (0, 8, 2, 3), (-1, 0, 2, 3), (0, -1, 2, 3), (2**62, 0, 2, 3), (0, 0, 0, 3), (0, 0, 2**62, 3)]
    for region in outside:
        with case(region), pytest.raises(ValueError, match="does not lie inside 8 x 10"):
            decode(GOOD, (8, 10), region, 1, target)
    for region in ((0, 0, 3, 3), (0, 0, 2, 2)):
        with case(region), pytest.raises(ValueError, match="target has shape"):
            decode(GOOD, (8, 10), region, 1, target)
    for image, scale in itertools.product([(9, 10), (8, 11), (2, 3), (65535, 65535)], (1, 2, 8)):
        with case(image, scale), pytest.raises(ValueError, match="it cannot be decoded"):
            decode(GOOD, image, (0, 0, 2, 3), scale, target)
    with pytest.raises(ValueError, match="no bytes"):
        decode(b"", (8, 10), (0, 0, 2, 3), 1, target)
    decode(GOOD, (8, 10), (0, 0, 2, 3), 1, target)
    assert np.array_equal(target, load("cpu.opencv")([GOOD])[0][:2, :3])


@each
def test_a_region_of_a_damaged_image_is_that_of_the_whole(name):
    """Bytes in the middle are changed: decoders make up what they cannot read, and all implementations the same of it."""
    jpeg = encoded(np.random.default_rng(3).integers(0, 256, (64, 64, 3)).astype(np.uint8), subsampling=2)
    middle = len(jpeg) // 2
    jpeg = jpeg[:middle] + b"\x12\x34\x56" + jpeg[middle + 3 :]
    (whole,), (found,) = load(name)([jpeg]), load(name)([jpeg], [(40, 30, 20, 30)])
    assert np.array_equal(found, part(whole, Region(40, 30, 20, 30)))


@each
@pytest.mark.parametrize("form", CUT)
def test_pixels_that_end_before_the_image_are_said(name, form):
    function, (jpeg, *shorter) = load(name), CUT[form]
    for less in shorter:
        with case(len(less)), pytest.raises(BadImage, match=r"^jpegs\[1\] is damaged: its pixels end before the image does$"):
            function([GOOD, less], [(0, 0, 1, 1)] * 2)
    assert function([jpeg])[0].shape == (40, 56, 3)


def test_an_image_is_looked_through_once(monkeypatch):
    looked = mock.Mock(return_value=True)
    monkeypatch.setattr(markers, "_reader", lambda: looked)
    images = [encoded(np.zeros((8, 8, 3), np.uint8), comment=comment) for comment in ("seen once", "and another")]
    load("cpu.opencv")(images * 2)
    load("cpu.pillow")([bytes(bytearray(image)) for image in images])
    assert looked.call_count == 2


def test_without_libjpeg_images_are_decoded_all_the_same(monkeypatch):
    monkeypatch.setattr(markers, "_reader", lambda: None)
    assert load("cpu.pillow")([CUT["sequential"][1]])[0].shape == (40, 56, 3)


@pytest.mark.parametrize("name", ["cpu.libjpeg", "cpu.libjpeg_region"])
def test_without_its_compiled_part_it_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "impls.decode_jpeg.cpu._cython_jpeg", None)
    for module in (name, "libjpeg_images"):
        monkeypatch.delitem(sys.modules, f"impls.decode_jpeg.{module}", raising=False)
    with pytest.raises(impls.Unavailable, match=r"its compiled part is missing: .*libjpeg-turbo's headers .*libjpeg-dev"):
        impls.load(name, "decode_jpeg")
