"""NumPy on the region alone, one image after the other: crop first, then convert, resize, normalise and convolve.

6 R S + 30 FLOPs a pixel of a patch, a pass over it for each; extra memory: the decoded image, a patch and its response, and
an array or two for each pass. From a post on speeding up a program for computer vision: less work first. Pillow decodes.
"""

import numpy as np

from impls import contract
from impls.contract import implementation
from impls.decode_jpeg.pillow_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.stages import crop, mark, paste, resize

CONVOLVE = contract.load("cpu.shift_matmul")


@implementation(device="cpu", family="numpy", summary="NumPy: only the region, one image at a time")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    return image_by_image(to_patch, jpegs, regions, weight, threshold, size, mean, std)


def image_by_image(to_patch, jpegs, regions, weight, threshold, size, mean, std):
    """The masks of images whose patches are made by to_patch(pixels, region, size, mean, std)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        response = convolve(to_patch(pixels, region, size, mean, std), weight)
        masks.append(finish(response, region, size, threshold, pixels.shape[:2]))
    return masks


def to_patch(pixels, region, size, mean, std):
    """The region as a normalised patch (1, 3, size, size)."""
    patch = np.zeros((1, 3, size, size), np.float32)
    height, width = fit(region, size)
    part = (resize(np, crop(pixels, region).astype(np.float32), height, width) / np.float32(255) - mean) / std
    patch[0, :, :height, :width] = part.transpose(2, 0, 1)
    return patch


def convolve(patches, weight):
    """The responses (N, size, size)."""
    return CONVOLVE(patches, weight, padding="same")[:, 0]


def finish(response, region, size, threshold, shape):
    """The mask of an image of this shape."""
    height, width = fit(region, size)
    return paste(mark(response[0, :height, :width], threshold), region, shape)
