"""JPEGs made for a test, their pixels, and the right masks."""

import functools
import io

import numpy as np
import pytest

import impls
from impls.preprocess.arguments import MEAN, STD

Image = pytest.importorskip("PIL.Image", reason="JPEGs are made with Pillow")


CPU = impls.names("preprocess", "cpu")


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


@functools.cache
def edges(jpeg, region):
    """The same for the filter EDGES and what is usual else."""
    return expected(jpeg, region, EDGES, 0.0, 128, MEAN, STD)


def right(mask, margins, slack=2e-4):
    assert (mask.shape, mask.dtype) == (margins.shape, "uint8")
    outside = np.isnan(margins)
    assert not mask[outside].any()
    clear = np.abs(np.where(outside, 0, margins)) > slack
    assert np.array_equal(mask[clear], np.where(margins[clear] > 0, 255, 0))


GOOD = encoded(RANDOM.integers(0, 256, (8, 10, 3)).astype(np.uint8))


EDGES = np.ones((1, 3, 3, 3), np.float32)


THUMBNAIL = GOOD[:2] + b"\xff\xe1" + (len(GOOD) + 2).to_bytes(2, "big") + GOOD + GOOD[2:]


def claiming(height, width):
    """A JPEG that claims a given size."""
    at = GOOD.index(b"\xff\xc0") + 5
    return GOOD[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + GOOD[at + 4 :]


def outside(right, *given):
    masks = right(*given)
    masks[0][0, 0] = masks[0][-1, -1] = masks[0][0, -1] = 255
    return masks
