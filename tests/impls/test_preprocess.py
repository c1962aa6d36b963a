"""preprocess: every implementation gives the right masks, or says in the same words as all others what is wrong."""

import dataclasses
import functools
import io
import json
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from gpu_stand_ins import cupy_on_numpy, replaced
from hypothesis import given, settings
from hypothesis import strategies as st

import impls
from benchmarks.harness import cell
from benchmarks.workloads import jpegs, oracle
from benchmarks.workloads.jpegs import Frames, Preprocess
from impls.preprocess import jpeg as markers
from impls.preprocess.arguments import MEAN, STD, Region, fit

Image = pytest.importorskip("PIL.Image", reason="JPEGs are made with Pillow")

CPU = impls.names("preprocess", "cpu")
GPU = impls.names("preprocess", "cuda")
each = pytest.mark.parametrize("name", CPU)
RANDOM = np.random.default_rng(0)


@functools.cache
def load(name):
    try:
        return impls.load(name, "preprocess")
    except impls.Unavailable as error:
        pytest.skip(str(error))


def encoded(pixels, **form):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **{"quality": 95, "subsampling": 0, **form})
    return file.getvalue()


def decoded(jpeg):
    return np.asarray(Image.open(io.BytesIO(jpeg)).convert("RGB"), np.float64)


def expected(jpeg, region, weight, threshold, size, mean, std):
    """The definition pixel by pixel in float64: how far the response is above the threshold, NaN outside the region."""
    pixels = decoded(jpeg)
    top, left, height, width = region
    rows, columns = (max(1, int(np.floor(side * size / max(height, width) + 0.5))) for side in (height, width))

    def value(c, y, x):
        if not (0 <= y < rows and 0 <= x < columns):
            return 0.0
        down, along = (y + 0.5) * height / rows - 0.5, (x + 0.5) * width / columns - 0.5
        down, along = min(max(down, 0), height - 1), min(max(along, 0), width - 1)
        a, b = int(down), int(along)
        total = 0.0
        for i, p in ((a, 1 - (down - a)), (min(a + 1, height - 1), down - a)):
            for j, q in ((b, 1 - (along - b)), (min(b + 1, width - 1), along - b)):
                total += p * q * pixels[top + i, left + j, c]
        return (total / 255 - mean[c]) / std[c]

    taps_y, taps_x = weight.shape[2:]
    patch = np.zeros((3, rows + taps_y - 1, columns + taps_x - 1))
    for c, y, x in np.ndindex(3, rows, columns):
        patch[c, y + taps_y // 2, x + taps_x // 2] = value(c, y, x)
    margins = np.full(pixels.shape[:2], np.nan)
    for y, x in np.ndindex(height, width):
        p, q = (2 * y + 1) * rows // (2 * height), (2 * x + 1) * columns // (2 * width)
        margins[top + y, left + x] = (weight[0] * patch[:, p : p + taps_y, q : q + taps_x]).sum() - threshold
    return margins


def right(mask, margins, slack=2e-4):
    assert (mask.shape, mask.dtype) == (margins.shape, "uint8")
    outside = np.isnan(margins)
    assert not mask[outside].any()
    clear = np.abs(np.where(outside, 0, margins)) > slack
    assert np.array_equal(mask[clear], np.where(margins[clear] > 0, 255, 0))


# Right answers


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
def test_what_needs_a_gpu_gives_the_same_masks_without_one(name):
    images = [encoded(RANDOM.integers(0, 256, (9, 12, 3)).astype(np.uint8)) for _ in range(2)]
    places, weight = [(1, 2, 7, 10), (0, 0, 4, 3)], RANDOM.normal(size=(1, 3, 3, 3)).astype(np.float32)
    with replaced(cupy_on_numpy()):
        masks = impls.load(name, "preprocess")(images, places, weight, 0.5, 8)
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


# Mistakes

GOOD = encoded(RANDOM.integers(0, 256, (8, 10, 3)).astype(np.uint8))
EDGES = np.ones((1, 3, 3, 3), np.float32)
THUMBNAIL = GOOD[:2] + b"\xff\xe1" + (len(GOOD) + 2).to_bytes(2, "big") + GOOD + GOOD[2:]


def cmyk():
    file = io.BytesIO()
    Image.new("CMYK", (4, 4)).save(file, "JPEG")
    return file.getvalue()


def claiming(height, width):
    """A JPEG that says it were so large."""
    at = GOOD.index(b"\xff\xc0") + 5
    return GOOD[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + GOOD[at + 4 :]


@each
@pytest.mark.parametrize(
    ("jpegs", "regions", "more", "error", "words"),
    [
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
    ],
)
def test_a_mistake_is_named(name, jpegs, regions, more, error, words):
    with pytest.raises(error, match=words):
        load(name)(jpegs, regions, **{"weight": EDGES, **more})


@each
def test_a_thumbnail_is_not_the_image(name):
    (mask,) = load(name)([THUMBNAIL], [(2, 1, 5, 8)], EDGES)
    right(mask, expected(GOOD, (2, 1, 5, 8), EDGES, 0.0, 128, MEAN, STD))


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


# Files of strangers


def segment(marker, data=b""):
    return bytes((0xFF, marker)) + (len(data) + 2).to_bytes(2, "big") + data


def before_the_pixels(*parts, jpeg=GOOD):
    """A JPEG with more between its first marker and the others."""
    return jpeg[:2] + b"".join(parts) + jpeg[2:]


def frame(height, width, marker=0xC0, bits=8):
    return segment(marker, bytes((bits, *height.to_bytes(2, "big"), *width.to_bytes(2, "big"), 1, 1, 0x11, 0)))


def changed(place, *values):
    """A JPEG with other bytes in its frame, counted from its marker."""
    at = GOOD.index(b"\xff\xc0") + place
    return GOOD[:at] + bytes(values) + GOOD[at + len(values) :]


def hidden(height, width):
    """A JPEG that libjpeg, which passes over FF 00, reads as GOOD, and a walk through lengths as one of another size."""
    begin = GOOD.index(b"\xff\xc0")
    own = GOOD[begin : begin + 19]
    other = own[:5] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + own[9:]
    inner = own + segment(0xE1, other)[:4]
    return GOOD[:begin] + b"\xff\x00" + (len(inner) + 2).to_bytes(2, "big") + inner + other + GOOD[begin + 19 :]


def many_scans(count):
    """A progressive JPEG whose last scan comes so many times more."""
    jpeg = encoded(np.zeros((8, 8, 3), np.uint8), progressive=True)
    return jpeg[:-2] + jpeg[jpeg.rindex(b"\xff\xda") : -2] * count + jpeg[-2:]


def arithmetic():
    """A grey JPEG of 8x8 pixels, coded arithmetically: nothing but the middle value needs no bit."""
    tables = segment(0xDB, bytes((0, *[1] * 64)))
    return b"\xff\xd8" + tables + frame(8, 8, 0xC9) + segment(0xDA, bytes((1, 1, 0, 0, 63, 0))) + b"\xff\xd9"


UNREADABLE = {
    **{f"a size hidden from libjpeg, {side}": (hidden(side, side), "is damaged: marker 0x00") for side in (64, 3000)},
    **{
        f"marker {m:#x}": (before_the_pixels(segment(m)), f"is damaged: marker 0x{m:02X}")
        for m in (0, 2, 0xBF, 0xC8, 0xDE, 0xF7)
    },
    "a second start": (before_the_pixels(b"\xff\xd8"), "is damaged: marker 0xD8"),
    "an end before the pixels": (before_the_pixels(b"\xff\xd9"), "is damaged: marker 0xD9"),
    **{f"a length of {n}": (before_the_pixels(b"\xff\xe1\0" + bytes((n,))), "is damaged: segment 0xE1") for n in (0, 1)},
    "two sizes": (before_the_pixels(frame(8, 8)), "is damaged: it says its size twice"),
    "two sizes, one huge": (before_the_pixels(frame(30000, 30000)), "is damaged: it says its size twice"),
    **{f"frame {m:#x}": (changed(1, m), f"is of a kind that is not read here, 0x{m:X}") for m in (0xC3, 0xC5, 0xCB, 0xCF)},
    "12 bits": (changed(4, 12), "has 12 bits a component"),
    "a frame too long": (
        before_the_pixels(segment(0xC0, frame(8, 8)[4:] + b"\0")),
        "is damaged: its size stands in a segment of",
    ),
    "more pixels than bytes": (claiming(9000, 9000), "has 9000 x 9000 pixels and "),
    "a hundred thousand scans": (many_scans(100_000), "has more than 100 scans"),
}
READABLE = {
    "fill bytes": before_the_pixels(b"\xff" * 9),
    "markers alone": before_the_pixels(b"\xff\x01", *(bytes((0xFF, m)) for m in range(0xD0, 0xD8))),
    "every application": before_the_pixels(*(segment(m, b"anything" * 9) for m in {*range(0xE0, 0xF0), 0xFE} - {0xE0, 0xEE})),
    "tables and settings": before_the_pixels(segment(0xCC), segment(0xDD, bytes(2)), segment(0xDC, bytes((0, 8)))),
    "a size in a thumbnail": before_the_pixels(segment(0xE1, b"Exif\0\0" + GOOD)),
    "a film behind it": GOOD + b"\xff\xda" * 500,
    "scan markers in a comment behind it": GOOD[:-2] + segment(0xFE, b"\xff\xda" * 500) + GOOD[-2:],
}


@each
@pytest.mark.parametrize("kind", UNREADABLE)
def test_a_file_that_says_one_thing_and_holds_another_is_refused(name, kind):
    jpeg, words = UNREADABLE[kind]
    for region in ((0, 0, 1, 1), (0, 0, 8, 8), (0, 0, 3000, 3000)):
        with pytest.raises(markers.BadImage, match=rf"^jpegs\[1\] {words}"):
            load(name)([GOOD, jpeg], [(0, 0, 1, 1), region], EDGES)


@each
@pytest.mark.parametrize("kind", READABLE)
def test_whatever_else_a_jpeg_may_hold_is_passed_over(name, kind):
    (mask,) = load(name)([READABLE[kind]], [(2, 1, 5, 8)], EDGES)
    right(mask, expected(GOOD, (2, 1, 5, 8), EDGES, 0.0, 128, MEAN, STD))


@each
def test_arithmetic_coding_and_many_scans_are_read(name):
    images = [arithmetic(), many_scans(80)]
    for mask, image in zip(load(name)(images, [(0, 0, 8, 8)] * 2, EDGES), images, strict=True):
        right(mask, expected(image, (0, 0, 8, 8), EDGES, 0.0, 128, MEAN, STD))


@pytest.mark.parametrize("form", [{}, {"progressive": True}, {"subsampling": 2}])
@pytest.mark.parametrize("shape", [(4096, 4096), (4096, 4096, 3), (8, 65000), (1, 65000, 3)])
def test_no_blank_image_is_too_dense(form, shape):
    assert markers.shape(encoded(np.full(shape, 128, np.uint8), optimize=True, **form)) == shape[:2]


def decoders():
    for library in ("opencv", "pillow"):
        try:
            yield __import__(f"impls.preprocess.{library}_images", fromlist=["decode"]).decode
        except ImportError:
            continue


@settings(max_examples=400, deadline=None)
@given(
    st.sampled_from(
        [GOOD, THUMBNAIL, arithmetic(), many_scans(1), encoded(np.zeros((9, 9), np.uint8), restart_marker_rows=1)]
    ),
    st.lists(st.tuples(st.integers(0, 2000), st.sampled_from([b"\0", b"\x01", b"\xff", b"\xff\xc0", b"\xff\xda", b"\x7f"]))),
    st.integers(0, 2000),
)
def test_what_is_decoded_has_the_size_that_was_checked(jpeg, changes, end):
    for place, some in changes:
        place %= len(jpeg)
        jpeg = jpeg[:place] + some + jpeg[place + (end % 2) * len(some) :]
    for decode in decoders():
        try:
            found, known = decode([jpeg], 0).shape, (*markers.shape(jpeg), 3)
        except markers.BadImage as error:
            found, known = str(error)[:9], "jpegs[0] "
        assert found == known


@pytest.mark.parametrize(
    "error", [KeyError, OverflowError, RuntimeError, IndexError, Image.DecompressionBombError, SyntaxWarning]
)
def test_every_error_of_a_decoder_is_the_images(error):
    def fails(_):
        raise error("of the library's own")

    with pytest.raises(markers.BadImage, match=r"^jpegs\[1\] is damaged: it cannot be decoded$"):
        markers.decoded([GOOD, GOOD], 1, fails)
    with pytest.raises(markers.BadImage, match=r"^jpegs\[0\] is damaged: it cannot be decoded$"):
        markers.decoded([GOOD], 0, lambda _: None)
    said = r"^jpegs\[0\] is damaged: its markers say 8 x 10 pixels, and 10 x 8 x 3 values were decoded$"
    with pytest.raises(markers.BadImage, match=said):
        markers.decoded([GOOD], 0, lambda _: np.zeros((10, 8, 3), np.uint8))


def test_memory_that_is_lacking_is_not_the_images_fault(monkeypatch):
    cv2 = pytest.importorskip("cv2")
    from impls.preprocess import opencv_images

    def fails(*_):
        error = cv2.error("Failed to allocate 192000000 bytes")
        error.code = cv2.Error.StsNoMem
        raise error

    monkeypatch.setattr(cv2, "imdecode", fails)
    with pytest.raises(MemoryError, match=r"^no memory is left for the 8 x 10 pixels of jpegs\[0\]$"):
        opencv_images.decode([GOOD], 0)


def test_tags_cost_nothing():
    """5,000 tags of 59 KB each, which lie in the same 59 KB: Pillow warns, and before 13 it copied each."""
    entries = b"".join(np.array([tag, 7], "<u2").tobytes() + np.array([59000, 8], "<u4").tobytes() for tag in range(1, 5000))
    tags = b"II*\0" + (8).to_bytes(4, "little") + (4999).to_bytes(2, "little") + entries + bytes(4)
    head, rest = GOOD[:2], GOOD[2:].split(segment(0xE0)[:2], 1)[1]
    jpeg = (
        head + segment(0xE1, b"Exif\0\0" + tags) + rest[int.from_bytes(rest[:2], "big") :]
    )  # and no JFIF, which says the same
    for decode in decoders():
        decode([GOOD], 0)
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pixels = decode([jpeg], 0)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert pixels.shape == (8, 10, 3)
        assert peak < 1_000_000


PIXELS, PATCH = np.zeros((8, 9, 3), np.uint8), np.zeros((3, 6, 7), np.float32)
MASK, MARKS, ONES = np.zeros((8, 9), np.uint8), np.zeros((4, 5), np.uint8), np.ones(3, np.float32)
TAPS = np.ones((3, 3, 3), np.float32)


def kernels(name):
    """The three kernels, each with what it is called with, in one form."""
    module = __import__(f"impls.preprocess.{name}", fromlist=["preprocess"])
    load(name)
    if name == "cpu.numba_fused":
        prepare = lambda region, part: module._prepare(PIXELS, *region, ONES, ONES, PATCH[:, 1:, 1:], *part)  # noqa: E731
        return prepare, lambda *a: module._mark(PATCH, TAPS, np.float32(0), *a), lambda r: module._paste(MARKS, MASK, *r)
    compiled = module._cython_preprocess
    prepare = lambda region, part: compiled.prepare(PIXELS, region, ONES, ONES, PATCH, (1, 1), part)  # noqa: E731
    return prepare, lambda marks: compiled.mark(PATCH, TAPS, 0.0, marks), lambda r: compiled.paste(MARKS, MASK, r)


OUTSIDE = [(0, 0, 9, 9), (0, 0, 8, 10), (1, 0, 8, 9), (0, 1, 8, 9), (-1, 0, 2, 2), (0, -1, 2, 2), (0, 0, 0, 1), (0, 0, 1, 0)]


@pytest.mark.parametrize("name", ["cpu.cython_fused", "cpu.numba_fused"])
def test_compiled_kernels_never_leave_their_arrays(name):
    prepare, mark, paste = kernels(name)
    for region in (*OUTSIDE, (2**62, 0, 1, 1), (0, 0, 2**62, 1)):
        with pytest.raises(ValueError, match="inside"):
            prepare(region, (4, 5))
        with pytest.raises(ValueError, match="inside"):
            paste(region)
    for part in ((6, 5), (4, 7), (0, 1), (1, 0), (-1, 1)):
        with pytest.raises(ValueError, match="inside"):
            prepare((0, 0, 8, 9), part)
    for shape in ((5, 5), (4, 6), (0, 5)):
        with pytest.raises(ValueError, match="inside"):
            mark(np.zeros(shape, np.uint8))
    prepare((0, 0, 8, 9), (5, 6))
    mark(MARKS)
    paste((0, 0, 8, 9))


NEEDS = {
    **dict.fromkeys(["cpu.numpy", "cpu.numpy_batched", "cpu.numpy_whole"], "pillow"),
    **dict.fromkeys(["cpu.opencv", "cpu.cython_fused"], "opencv-python-headless"),
    "cpu.numba_fused": "numba",
    **dict.fromkeys(["cpu.torch", "cpu.torch_batched"], "torch==2.13.0"),
}


def test_missing_libraries():
    code = """
import json, sys
sys.modules.update(dict.fromkeys(["PIL", "cv2", "torch", "numba"]))
import impls
said = {}
for name in impls.names("preprocess", "cpu"):
    try:
        said[name] = impls.load(name, "preprocess").name
    except impls.Unavailable as reason:
        said[name] = str(reason)
print(json.dumps(said))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    said = json.loads(done.stdout)
    assert sorted(said) == sorted(NEEDS)
    for name, library in NEEDS.items():
        assert said[name].endswith(f"pip install {library}")


# The judge

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


def outside(right, *given):
    masks = right(*given)
    masks[0][0, 0] = masks[0][-1, -1] = masks[0][0, -1] = 255
    return masks


def ones(right, *given):
    return [mask // 255 for mask in right(*given)]


def floats(right, *given):
    return [mask.astype(np.float32) for mask in right(*given)]


@pytest.mark.parametrize(
    "fault", [another_mean, the_next_region, another_order, mirrored, one_less, a_pixel, outside, ones, floats]
)
def test_wrong_masks_are_found(fault):
    with pytest.raises(oracle.WrongAnswer):
        Preprocess("preprocess", FRAMES).check(broken(fault), {})


def test_masks_that_are_remembered_are_found():
    kept = []

    def remembered(right, *given):
        kept.append(right(*given))
        return kept[0]

    made = Preprocess("preprocess", FRAMES).check(broken(remembered), {})
    made.block(2)
    with pytest.raises(oracle.WrongAnswer, match="of images in another order"):
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
