"""decode_jpeg: every implementation gives the pixels of an independent decoder, and the region those of the whole image."""

import dataclasses
import functools

import numpy as np
import pytest
from cases import case
from hypothesis import given, settings
from hypothesis import strategies as st
from jpeg_regions import each, load, part, regions
from jpegs import GOOD, RANDOM, THUMBNAIL, claiming, encoded

from benchmarks.errors import WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads.decoding import jpeg_reference, jpeg_task
from benchmarks.workloads.decoding.jpeg_task import MAX_ERROR, DecodeJpeg, Pictures
from impls.decode_jpeg.arguments import SCALES, Region
from impls.decode_jpeg.jpeg import BadImage


@st.composite
def images(draw):
    """A JPEG of any kind that is read, and what the reference makes of it; progressive, it has the same coefficients."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**16)))
    height, width, scale = draw(st.integers(1, 70)), draw(st.integers(1, 70)), draw(st.sampled_from(SCALES))
    shape = (height, width, 3) if draw(st.booleans()) else (height, width)
    pixels = numbers.integers(0, 256, shape).astype(np.uint8)
    form = {"quality": draw(st.sampled_from([30, 75, 95])), "subsampling": draw(st.sampled_from([0, 1, 2]))}
    scale = scale if min(height, width) >= scale else 1
    known = jpeg_reference.decode(encoded(pixels, **form), scale)
    return encoded(pixels, progressive=draw(st.booleans()), **form), scale, known


@each
def test_any_region_of_any_image(name):
    function = load(name)

    @settings(max_examples=100, deadline=None)
    @given(image=images(), data=st.data())
    def agrees(image, data):
        jpeg, scale, known = image
        region = data.draw(regions(*known.shape[:2]))
        (whole,), (found,) = function([jpeg], scale=scale), function([jpeg], [region], scale)
        assert (whole.shape, whole.dtype) == (known.shape, "uint8")
        assert np.abs(whole - known).max() <= MAX_ERROR
        # Not within a tolerance: what is decoded of the blocks beside a region must not show in it.
        assert np.array_equal(found, part(whole, region))
        assert found.base is None
        assert found.flags.writeable
        assert whole.flags.writeable

    agrees()


@each
def test_as_many_images_as_workers_and_more(name):
    pictures = [encoded(RANDOM.integers(0, 256, (20, 9 + i, 3)).astype(np.uint8)) for i in range(7)]
    places = [(i, i, 9, 3) for i in range(7)]
    alone = [load(name)([jpeg], [place])[0] for jpeg, place in zip(pictures, places, strict=True)]
    for workers in (1, 2, 3, 7, 20):
        with case(workers):
            found = load(name)(pictures, places, workers=workers)
            assert list(map(np.ndarray.tolist, found)) == list(map(np.ndarray.tolist, alone))


@each
def test_large_images_as_they_are_measured(name):
    load(name)
    problem = Pictures(5, 240, 320, 50, 70, 2, workers=2)
    made = cell.task("decode_jpeg", problem).check(load(name), {})
    made.block(2)
    assert made.verify(made.block.output)["mean_error"] < 0.6


MISTAKES = [
    (([],), {}, ValueError, "jpegs is empty; a batch has at least one image"),
    ((GOOD,), {}, TypeError, "jpegs must be a list of bytes, not bytes"),
    (([GOOD, "a.jpg"],), {}, TypeError, r"jpegs\[1\] must be the bytes of a JPEG, not str"),
    (([GOOD, GOOD[:-2]],), {}, BadImage, r"jpegs\[1\] is cut short"),
    (([GOOD, THUMBNAIL[:-9]],), {}, BadImage, r"jpegs\[1\] is cut short"),
    (([b""],), {}, BadImage, r"jpegs\[0\] is not a JPEG"),
    (([claiming(65535, 65535)],), {}, BadImage, r"jpegs\[0\] has 65535 x 65535 pixels"),
    (([GOOD], [(0, 0, 1, 1)] * 2), {}, ValueError, "regions must have a row for each of the 1 images, not 2"),
    (([GOOD], [(0, 0, 1)]), {}, TypeError, "regions must be rows of four integers: top, left, height, width"),
    (([GOOD], [(0, 0, 1, 1.5)]), {}, TypeError, "regions must be rows of four integers"),
    (([GOOD], 7), {}, TypeError, "regions must be rows of four integers"),
    (([GOOD], [(0, 0, 0, 1)]), {}, ValueError, r"regions\[0\] must hold at least one pixel, not 0 x 1"),
    (([GOOD], [(0, 0, 9, 1)]), {}, ValueError, r"rows 0 to 9 and columns 0 to 1, lies outside its image of 8 x 10 pixels"),
    (([GOOD], [(0, 0, 5, 1)]), {"scale": 2}, ValueError, "rows 0 to 5 .* outside its image of 4 x 5 pixels"),
    (([GOOD], [(0, -1, 1, 1)]), {}, ValueError, "columns -1 to 0, lies outside its image"),
    *((([GOOD],), {"scale": s}, ValueError, f"scale must be 1, 2, 4 or 8, not {s!r}") for s in (0, 3, 16, -1, True, "2")),
    (([encoded(np.zeros((3, 9), np.uint8))],), {"scale": 4}, ValueError, r"the 3 pixels of jpegs\[0\]'s shorter side, not 4"),
    (([GOOD],), {"workers": 0}, ValueError, "workers must be at least 1, not 0"),
    (([GOOD],), {"workers": 1.5}, TypeError, "workers must be an integer, not 1.5"),
]


@each
def test_a_mistake_is_named(name):
    for given_, more, error, words in MISTAKES:
        with case(words), pytest.raises(error, match=words):
            load(name)(*given_, **more)


def test_what_would_not_fit_is_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("impls.checks.UNASKED", 1)
    monkeypatch.setattr("impls.checks.free_memory", lambda: 239)
    with pytest.raises(MemoryError, match="the pixels of 1 images would take 240 bytes, and 239 bytes of memory are free"):
        load("cpu.pillow")([GOOD])


def test_what_is_unsupported_is_said_of_shapes():
    function = load("cpu.pillow")
    assert function.unsupported((8, 10), (8, 10)) is None
    assert function.unsupported((8, 10), (4, 5), 2, 3) is None
    for wrong in (((8, 10), (9, 10)), ((8, 10), (8, 10), 2), ((3, 9), None, 4), ((8, 10), None, 5), ((8, 10), None, 1, 0)):
        with pytest.raises(ValueError, match=r"must|outside"):
            function.unsupported(*wrong)


PROBLEM = Pictures(3, 60, 80, 21, 30, 2)


def broken(how):
    """An implementation with a fault: how(right, jpegs, regions, scale, workers)."""
    return dataclasses.replace(load("cpu.opencv"), function=functools.partial(how, load("cpu.opencv")))


def blue_first(right, *given, **more):
    return [pixels[..., ::-1] for pixels in right(*given, **more)]


def the_next_column(right, jpegs, regions, **more):
    return right(jpegs, [(top, left - 1 if left else 1, *size) for top, left, *size in regions], **more)


def another_order(right, jpegs, regions, **more):
    return right(jpegs[::-1], regions[::-1], **more)


def one_less(right, *given, **more):
    return right(*given, **more)[:-1]


def brighter(right, *given, **more):
    return [pixels + np.uint8(1) * (pixels < 255) for pixels in right(*given, **more)]


def a_pixel(right, *given, **more):
    found = right(*given, **more)
    found[2][3, 4, 1] ^= 8
    return found


def floats(right, *given, **more):
    return [pixels.astype(np.float32) for pixels in right(*given, **more)]


def every_other_pixel(right, jpegs, regions, scale, workers):
    """Reduced without averaging, as a program does that decodes at full size and picks."""
    whole = right(jpegs, None)
    return [
        np.ascontiguousarray(part(pixels[::2, ::2], Region(*region))) for pixels, region in zip(whole, regions, strict=True)
    ]


@pytest.mark.parametrize(
    "fault", [blue_first, the_next_column, another_order, one_less, brighter, a_pixel, floats, every_other_pixel]
)
def test_wrong_pixels_are_found(fault):
    with pytest.raises(WrongAnswer):
        DecodeJpeg("decode_jpeg", dataclasses.replace(PROBLEM, workers=1)).check(broken(fault), {})


def test_pixels_that_are_remembered_are_found():
    kept = []

    def remembered(right, *given, **more):
        kept.append(right(*given, **more))
        return kept[0]

    made = DecodeJpeg("decode_jpeg", dataclasses.replace(PROBLEM, workers=1)).check(broken(remembered), {})
    made.block(2)
    with pytest.raises(WrongAnswer, match="of images in another order"):
        made.verify(made.block.output)


def test_a_problem_is_its_label():
    assert Pictures.parse(PROBLEM.label) == PROBLEM
    assert PROBLEM.label == "n3h60w80y21x30r2"
    assert Pictures.whole(1, 9, 17, 8) == Pictures(1, 9, 17, 2, 3, 8)
    for label in ("n1", "n1h8w8y9x8r1", "n1h8w8y8x8r2", "n1h8w8y1x1r3", "n1h3w9y1x1r4", "n0h8w8y8x8r1"):
        with pytest.raises(ValueError, match="one looks like n4h480w640y240x320r2"):
            Pictures.parse(label)


def test_a_reference_reads_what_the_suite_makes_and_nothing_else():
    with pytest.raises(ValueError, match="does not read marker 0xC2"):
        jpeg_reference.decode(encoded(np.zeros((8, 8, 3), np.uint8), progressive=True))
    many = cell.task("decode_jpeg", Pictures.whole(jpeg_task.DIFFERENT + 2, 16, 16)).arrays
    assert many[0][0] == many[0][jpeg_task.DIFFERENT] != many[0][1]
    assert many[1] is None
