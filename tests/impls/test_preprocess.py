"""preprocess: every implementation gives the right masks, or says in the same words as all others what is wrong."""

import dataclasses
import functools
import io

import numpy as np
import pytest
from cases import case
from gpu_stand_ins import cupy_on_numpy, replaced, torch_on_the_cpu
from hypothesis import given, settings
from hypothesis import strategies as st
from jpegs import (
    EDGES,
    GOOD,
    RANDOM,
    THUMBNAIL,
    Image,
    claiming,
    each,
    edges,
    encoded,
    expected,
    load,
    outside,
    right,
)

import impls
from benchmarks.errors import WrongAnswer
from benchmarks.harness import cell
from benchmarks.workloads import jpegs
from benchmarks.workloads.jpegs import Frames, Preprocess
from impls.decode_jpeg import jpeg as markers
from impls.preprocess.arguments import MEAN, STD, Region, fit

GPU = impls.names("preprocess", "cuda")


@st.composite
def calls(draw):
    """JPEGs, regions, a weight, a threshold, a size, mean and std."""
    numbers = np.random.default_rng(draw(st.integers(0, 2**16)))
    images, places = [], []
    for _ in range(draw(st.integers(1, 3))):
        height, width = draw(st.integers(1, 20)), draw(st.integers(1, 20))
        pixels = numbers.integers(0, 256, (height, width, 3) if draw(st.booleans()) else (height, width)).astype(np.uint8)
        images.append(encoded(pixels, progressive=draw(st.booleans())))
        top, left = draw(st.integers(0, height - 1)), draw(st.integers(0, width - 1))
        places.append((top, left, draw(st.integers(1, height - top)), draw(st.integers(1, width - left))))
    taps = draw(st.sampled_from([(1, 1), (3, 3), (3, 3), (5, 1), (7, 3)]))
    weight = numbers.normal(size=(1, 3, *taps)).astype(np.float32)
    mean, std = draw(st.sampled_from([(MEAN, STD), ((0, 0.5, 1), (1, 0.5, 0.1))]))
    return images, places, weight, draw(st.sampled_from([0.0, 0.5, -1.25])), draw(st.integers(1, 24)), mean, std


@each
def test_any_regions_of_any_images(name):
    function = load(name)

    @settings(max_examples=60, deadline=None)
    @given(call=calls())
    def agrees(call):
        images, places, weight, *more = call
        masks = function(images, places, weight, *more)
        assert len(masks) == len(images)
        for mask, image, region in zip(masks, images, places, strict=True):
            right(mask, expected(image, region, weight, *more), slack=2e-5 * (1 + 10 * np.abs(weight).sum()))

    agrees()


@pytest.mark.parametrize("name", GPU)
def test_what_needs_a_gpu_gives_the_same_masks_without_one(name, monkeypatch):
    images = [encoded(RANDOM.integers(0, 256, (9, 12, 3)).astype(np.uint8)) for _ in range(2)]
    places, weight = [(1, 2, 7, 10), (0, 0, 4, 3)], RANDOM.normal(size=(1, 3, 3, 3)).astype(np.float32)
    with replaced(cupy_on_numpy()) if "cupy" in name else torch_on_the_cpu():
        function = impls.load(name, "preprocess")
        if "torch" in name:
            monkeypatch.setattr("impls.preprocess.gpu.torch.DEVICE", "cpu")
            monkeypatch.setattr("torch.cuda.synchronize", lambda: None)
        masks = function(images, places, weight, 0.5, 8)
    for mask, image, region in zip(masks, images, places, strict=True):
        right(mask, expected(image, region, weight, 0.5, 8, MEAN, STD))


@pytest.mark.gpu
@pytest.mark.parametrize("name", GPU)
def test_on_the_device(name):
    load(name)
    made = cell.prepare(name, Frames(3, 48, 64, 30, 40, 32), operation="preprocess")
    made.block(3)
    made.verify(made.block.output)


@each
def test_large_images_as_they_are_measured(name):
    load(name)
    assert load(name).prepare is None  # a name that would mean something else
    made = Preprocess("preprocess", Frames(3, 240, 320, 120, 160, 64)).check(load(name), {})
    made.block(2)
    assert made.verify(made.block.output)["too_near_to_call"] < 0.01


@pytest.mark.parametrize(
    ("region", "size", "known"), [((480, 640), 128, (96, 128)), ((1, 500), 10, (1, 10)), ((3, 7), 7, (3, 7))]
)
def test_the_part_of_a_patch_that_has_pixels(region, size, known):
    assert fit(Region(0, 0, *region), size) == known


def cmyk():
    file = io.BytesIO()
    Image.new("CMYK", (4, 4)).save(file, "JPEG")
    return file.getvalue()


MISTAKES = [
    ([], [], {}, ValueError, "jpegs is empty; a batch has at least one image"),
    (GOOD, [(0, 0, 1, 1)], {}, TypeError, "jpegs must be a list of bytes, not bytes"),
    ([GOOD, "a.jpg"], [(0, 0, 1, 1)] * 2, {}, TypeError, r"jpegs\[1\] must be the bytes of a JPEG, not str"),
    ([GOOD, GOOD[:-2]], [(0, 0, 1, 1)] * 2, {}, markers.BadImage, r"jpegs\[1\] is cut short"),
    ([GOOD[: len(GOOD) // 2]], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is cut short"),
    ([THUMBNAIL[:-9]], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is cut short"),
    ([GOOD[:30]], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is cut short"),
    ([b""], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is not a JPEG"),
    ([b"\x89PNG" + GOOD], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is not a JPEG"),
    ([GOOD[:2] + b"\0" + GOOD[2:]], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] is damaged"),
    ([claiming(65535, 65535)], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] has 65535 x 65535 pixels"),
    ([cmyk()], [(0, 0, 1, 1)], {}, markers.BadImage, r"jpegs\[0\] has 4 components"),
    ([GOOD], [(0, 0, 1, 1)] * 2, {}, ValueError, "regions must have a row for each of the 1 images, not 2"),
    ([GOOD], [(0, 0, 1)], {}, TypeError, "regions must be rows of four integers: top, left, height, width"),
    ([GOOD], [(0, 0, 1, 1.5)], {}, TypeError, "regions must be rows of four integers"),
    ([GOOD], 7, {}, TypeError, "regions must be rows of four integers"),
    ([GOOD], [(0, 0, 0, 1)], {}, ValueError, r"regions\[0\] must hold at least one pixel, not 0 x 1"),
    (
        [GOOD],
        [(5, 0, 4, 1)],
        {},
        ValueError,
        r"regions\[0\], rows 5 to 9 and columns 0 to 1, lies outside its image of 8 x 10",
    ),
    ([GOOD], [(0, -1, 4, 1)], {}, ValueError, "columns -1 to 0, lies outside its image"),
    ([GOOD], [(0, 0, 4, 11)], {}, ValueError, "columns 0 to 11, lies outside its image"),
    (
        [GOOD],
        [(0, 0, 1, 1)],
        {"weight": EDGES[:, :2]},
        ValueError,
        r"weight must have shape \(1, 3, R, S\) with odd R and S",
    ),
    ([GOOD], [(0, 0, 1, 1)], {"weight": EDGES[..., :2]}, ValueError, "with odd R and S"),
    ([GOOD], [(0, 0, 1, 1)], {"weight": EDGES.astype("f8")}, TypeError, "weight must be float32, not float64"),
    ([GOOD], [(0, 0, 1, 1)], {"size": 0}, ValueError, "size must be from 1 to 4096, not 0"),
    ([GOOD], [(0, 0, 1, 1)], {"size": 2.0}, TypeError, "size must be an integer, not 2.0"),
    ([GOOD], [(0, 0, 1, 1)], {"threshold": float("nan")}, ValueError, "threshold must be finite, not nan"),
    ([GOOD], [(0, 0, 1, 1)], {"threshold": None}, TypeError, "threshold must be a number, not None"),
    ([GOOD], [(0, 0, 1, 1)], {"mean": (1, 2)}, ValueError, "mean must be three numbers"),
    ([GOOD], [(0, 0, 1, 1)], {"std": (1, 0, 1)}, ValueError, r"std must be positive, not \(1, 0, 1\)"),
]


@each
def test_a_mistake_is_named(name):
    for images, regions, more, error, words in MISTAKES:
        with case(words), pytest.raises(error, match=words):
            load(name)(images, regions, **{"weight": EDGES, **more})


@each
def test_a_thumbnail_is_not_the_image(name):
    (mask,) = load(name)([THUMBNAIL], [(2, 1, 5, 8)], EDGES)
    right(mask, edges(GOOD, (2, 1, 5, 8)))


@pytest.mark.parametrize(
    "form", [{}, {"progressive": True}, {"subsampling": 2}, {"restart_marker_rows": 1}, {"exif": b"Exif\0\0" * 9}]
)
@pytest.mark.parametrize("shape", [(1, 1, 3), (17, 33), (300, 7, 3)])
def test_the_markers_say_the_size(form, shape):
    jpeg = encoded(RANDOM.integers(0, 256, shape).astype(np.uint8), **form)
    assert markers.shape(jpeg) == shape[:2]
    for end in range(0, len(jpeg), 7):
        with pytest.raises(markers.BadImage):
            markers.shape(jpeg[:end])


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60), st.integers(0, len(GOOD)))
def test_whatever_the_bytes_it_ends_with_a_size_or_a_sentence(some, place):
    for jpeg in (some, b"\xff\xd8" + some, GOOD[:place] + some + GOOD[place:]):
        try:
            found = markers.shape(jpeg)
        except markers.BadImage as error:
            found = str(error).startswith(("is ", "has ")), 1
        assert min(found) > 0


FRAMES = Frames(3, 60, 80, 30, 50, 32)


def broken(how, name="cpu.opencv"):
    """An implementation with a fault: how(right, jpegs, regions, weight, threshold, size)."""
    return dataclasses.replace(load(name), function=functools.partial(how, load(name)))


def another_mean(right, *given):
    return right(*given, mean=(0.49, 0.456, 0.406))


def the_next_region(right, jpegs, regions, *given):
    return right(jpegs, [(top, (left + 1) % 30, *size) for top, left, *size in regions], *given)


def another_order(right, jpegs, regions, *given):
    return right(jpegs[::-1], regions[::-1], *given)


def mirrored(right, jpegs, regions, weight, *given):
    return right(jpegs, regions, np.roll(weight, 1, axis=3).copy(), *given)


def one_less(right, *given):
    return right(*given)[:-1]


def a_pixel(right, *given):
    masks = right(*given)
    top, left, *_ = given[1][2]
    masks[2][top + 3, left + 4] ^= 255
    return masks


def ones(right, *given):
    return [mask // 255 for mask in right(*given)]


def floats(right, *given):
    return [mask.astype(np.float32) for mask in right(*given)]


@pytest.mark.parametrize(
    "fault", [another_mean, the_next_region, another_order, mirrored, one_less, a_pixel, outside, ones, floats]
)
def test_wrong_masks_are_found(fault):
    with pytest.raises(WrongAnswer):
        Preprocess("preprocess", FRAMES).check(broken(fault), {})


def test_masks_that_are_remembered_are_found():
    kept = []

    def remembered(right, *given):
        kept.append(right(*given))
        return kept[0]

    made = Preprocess("preprocess", FRAMES).check(broken(remembered), {})
    made.block(2)
    with pytest.raises(WrongAnswer, match="of images in another order"):
        made.verify(made.block.output)


def test_a_problem_is_its_label():
    assert Frames.parse(FRAMES.label) == FRAMES
    assert FRAMES.label == "n3h60w80y30x50s32"
    for label in ("n1", "n1h8w8y9x8s4", "n1h8w8y8x9s4", "n0h8w8y8x8s4"):
        with pytest.raises(ValueError, match="one looks like n4h480w640y120x160s128"):
            Frames.parse(label)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_regions_lie_inside_their_images(height, width, n):
    for top, left, *size in jpegs.regions(Frames(n, 40, 40, height, width, 8)):
        assert size == [height, width]
        assert 0 <= top <= 40 - height
        assert 0 <= left <= 40 - width


def test_the_ufunc_is_one_of_numpys():
    """Its operands lie in memory in any way, and are broadcast, converted or refused as any ufunc's are."""
    load("cpu.numpy_ufunc")
    from impls.preprocess.cpu._ufunc_normalise import normalise

    x = RANDOM.uniform(0, 255, (6, 5, 3)).astype(np.float32)
    mean, std = np.array(MEAN, np.float32), np.array(STD, np.float32)
    known = (x.astype(np.float64) / 255 - mean) / std
    for found in (normalise(x, mean, std), normalise(np.asfortranarray(x), mean, std), normalise(x[::-1], mean, std)[::-1]):
        assert np.allclose(found, known, rtol=1e-5, atol=1e-6)
    target = np.zeros((3, 8, 8), np.float32)
    normalise(x.transpose(2, 0, 1), mean[:, None, None], std[:, None, None], out=target[:, :6, :5])
    assert np.allclose(target[:, :6, :5], known.transpose(2, 0, 1), rtol=1e-5, atol=1e-6)
    assert not target[:, 6:].any()
    assert not target[:, :, 5:].any()
    with pytest.raises(TypeError):
        normalise(x.astype("f8"), mean, std)
    with pytest.raises(ValueError, match="broadcast"):
        normalise(x, mean[:2], std)
