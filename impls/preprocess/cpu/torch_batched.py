"""torch's functions on a batch: each region is cropped and resized by itself; then all are normalised and convolved at once.

6 R S + 30 FLOPs a pixel of a patch; extra memory: the batch (N, 3, size, size) and the responses. OpenCV decodes.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.interpolate.html
"""

import torch

from impls.contract import implementation
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.cpu.torch import convolve
from impls.preprocess.tensors import finish, resized


@implementation(device="cpu", family="library", summary="torch: only the region, all images in one batch")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    patches = torch.zeros((len(jpegs), 3, size, size))
    shapes = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        shapes.append(pixels.shape[:2])
        to_patch(pixels, region, patches[i])
    normalise(patches, regions, mean, std)
    responses = convolve(patches, weight)
    masks = []
    for response, region, shape in zip(responses[:, 0], regions, shapes, strict=True):
        masks.append(finish(response, region, threshold, shape))
    return masks


def to_patch(pixels, region, patch):
    """The region's pixels in a patch (3, size, size), as they are."""
    height, width = fit(region, patch.shape[1])
    patch[:, :height, :width] = resized(pixels, region, height, width)[0]


def normalise(patches, regions, mean, std):
    """All patches in place, and zeros beyond their pixels again."""
    patches.div_(255).sub_(torch.from_numpy(mean)[:, None, None]).div_(torch.from_numpy(std)[:, None, None])
    for patch, region in zip(patches, regions, strict=True):
        height, width = fit(region, patch.shape[1])
        patch[:, height:] = 0
        patch[:, :, width:] = 0
