"""NumPy on whole images: convert and normalise all of it, then crop, as a program does that adds the region last.

cpu.numpy's FLOPs, and four for each pixel of the image. What comes out is the same; extra memory: besides cpu.numpy's, the
whole image in float32 two or three times. Pillow decodes.
"""

import numpy as np

from impls.contract import implementation
from impls.preprocess.arguments import fit
from impls.preprocess.cpu.numpy import image_by_image
from impls.preprocess.stages import crop, resize


@implementation(device="cpu", family="numpy", summary="NumPy: the whole image, then the region, one image at a time")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    return image_by_image(to_patch, jpegs, regions, weight, threshold, size, mean, std)


def to_patch(pixels, region, size, mean, std):
    """The region as a normalised patch (1, 3, size, size), from a whole image that is normalised."""
    patch = np.zeros((1, 3, size, size), np.float32)
    height, width = fit(region, size)
    whole = (pixels.astype(np.float32) / np.float32(255) - mean) / std
    patch[0, :, :height, :width] = resize(np, crop(whole, region), height, width).transpose(2, 0, 1)
    return patch
