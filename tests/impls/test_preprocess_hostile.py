"""JPEGs with false claims about their content, failing decoders, and kernels that never leave their arrays."""

import importlib.util
import itertools
import json
import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
from cases import case
from hostile_jpegs import CUT, READABLE, UNREADABLE, arithmetic, many_scans, segment
from hypothesis import given, settings
from hypothesis import strategies as st
from jpegs import EDGES, GOOD, THUMBNAIL, Image, each, edges, encoded, load, right

from impls.decode_jpeg import jpeg as markers


@each
def test_a_file_that_says_one_thing_and_holds_another_is_refused(name):
    regions = (0, 0, 1, 1), (0, 0, 8, 8), (0, 0, 3000, 3000)
    for (kind, (jpeg, words)), region in itertools.product(UNREADABLE.items(), regions):
        with case(kind, region), pytest.raises(markers.BadImage, match=rf"^jpegs\[1\] {words}"):
            load(name)([GOOD, jpeg], [(0, 0, 1, 1), region], EDGES)


@each
def test_whatever_else_a_jpeg_may_hold_is_passed_over(name):
    for kind, jpeg in READABLE.items():
        with case(kind):
            (mask,) = load(name)([jpeg], [(2, 1, 5, 8)], EDGES)
            right(mask, edges(GOOD, (2, 1, 5, 8)))


@each
def test_arithmetic_coding_and_many_scans_are_read(name):
    images = [arithmetic(), many_scans(80)]
    for mask, image in zip(load(name)(images, [(0, 0, 8, 8)] * 2, EDGES), images, strict=True):
        right(mask, edges(image, (0, 0, 8, 8)))


@each
def test_pixels_that_end_before_the_image_are_said(name):
    """Also where they lie beyond the region."""
    for form, (jpeg, *parts) in CUT.items():
        for part in parts[::4]:
            with (
                case(form, len(part)),
                pytest.raises(markers.BadImage, match=r"^jpegs\[1\] is damaged: its pixels end before"),
            ):
                load(name)([jpeg, part], [(0, 0, 8, 8)] * 2, EDGES)


@pytest.mark.parametrize("form", [{}, {"progressive": True}, {"subsampling": 2}])
@pytest.mark.parametrize("shape", [(4096, 4096), (4096, 4096, 3), (8, 65000), (1, 65000, 3)])
def test_no_blank_image_is_too_dense(form, shape):
    assert markers.shape(encoded(np.full(shape, 128, np.uint8), optimize=True, **form)) == shape[:2]


def decoders():
    for library in ("opencv", "pillow", "libjpeg"):
        try:
            yield __import__(f"impls.decode_jpeg.{library}_images", fromlist=["decode"]).decode
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
    from impls.decode_jpeg import opencv_images

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
    load(name)
    if name == "cpu.numba_fused":
        from impls.preprocess.cpu import numba_fused as module

        prepare = lambda region, part: module._prepare(PIXELS, *region, ONES, ONES, PATCH[:, 1:, 1:], *part)  # noqa: E731
        return prepare, lambda *a: module._mark(PATCH, TAPS, np.float32(0), *a), lambda r: module._paste(MARKS, MASK, *r)
    from impls.preprocess.cpu import _cython_preprocess as compiled

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
    **dict.fromkeys(["cpu.numpy", "cpu.numpy_batched", "cpu.numpy_ufunc", "cpu.numpy_whole"], "pillow"),
    **dict.fromkeys(["cpu.opencv", "cpu.opencv_baseline", "cpu.opencv_umat", "cpu.cython_fused"], "opencv-python-headless"),
    "cpu.numba_fused": "numba",
    **dict.fromkeys(["cpu.torch", "cpu.torch_batched"], "torch==2.13.0"),
}


COMPILED = "impls.decode_jpeg.cpu._cython_jpeg"


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
    # It has no library but its own compiled part.
    assert said.pop("cpu.libjpeg_region") == "cpu.libjpeg_region" or importlib.util.find_spec(COMPILED) is None
    assert sorted(said) == sorted(NEEDS)
    for name, library in NEEDS.items():
        assert said[name].endswith(f"pip install {library}")
