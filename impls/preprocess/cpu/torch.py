"""torch's functions on the region alone, one image after the other.

6 R S + 30 FLOPs a pixel of a patch; extra memory: the decoded image, the region in float32, a patch and its response. OpenCV
decodes. https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

import torch
from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.tensors import tensor
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.tensors import finish, resized


@implementation(device="cpu", family="library", summary="torch: only the region, one image at a time")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        response = convolve(to_patch(pixels, region, size, mean, std), weight)
        masks.append(finish(response[0, 0], region, threshold, pixels.shape[:2]))
    return masks


def to_patch(pixels, region, size, mean, std):
    """The region as a normalised patch (1, 3, size, size)."""
    height, width = fit(region, size)
    part = resized(pixels, region, height, width)
    part = (part / 255 - torch.from_numpy(mean)[:, None, None]) / torch.from_numpy(std)[:, None, None]
    return functional.pad(part, (0, size - width, 0, size - height))


def convolve(patches, weight):
    """The responses (N, 1, size, size)."""
    return functional.conv2d(patches, tensor(weight), padding="same")
