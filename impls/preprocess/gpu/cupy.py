"""CuPy's functions on the region alone, one image after the other: each goes to the device and comes back by itself.

6 R S + 30 FLOPs a pixel of a patch, 3 h w bytes to the device and at most size^2 back for each image, and about thirty kernel
launches; extra memory: the region in float32 and a few arrays of a patch's size. OpenCV decodes, on the CPU.
https://docs.cupy.dev/en/stable/user_guide/basic.html
"""

import cupy
import numpy as np

from impls import contract
from impls.contract import implementation
from impls.conv2d.devices import require_cupy
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.stages import crop, mark, paste, resize

require_cupy("gpu.cupy")
CONVOLVE = contract.load("gpu.cupy_direct")


@implementation(device="cuda", family="numpy", summary="CuPy: only the region, one image at a time, transfers included")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        part = upload(np.ascontiguousarray(crop(pixels, region)))
        marks = download(compute(part, upload(weight), upload(mean), upload(std), region, threshold, size))
        masks.append(paste(marks, region, pixels.shape[:2]))
    return masks


def upload(array):
    """An array on the device."""
    return cupy.asarray(array)


def compute(pixels, weight, mean, std, region, threshold, size):
    """The marks (h, w) of a region's pixels: all that the device does; the caller waits for them."""
    height, width = fit(region, size)
    patch = cupy.zeros((1, 3, size, size), np.float32)
    part = (resize(cupy, pixels.astype(np.float32), height, width) / np.float32(255) - mean) / std
    patch[0, :, :height, :width] = part.transpose(2, 0, 1)
    marks = mark(CONVOLVE(patch, weight, padding="same")[0, 0, :height, :width], threshold)
    cupy.cuda.get_current_stream().synchronize()
    return marks


def download(array):
    """An array of the device as one of NumPy, once it is computed."""
    return cupy.asnumpy(array)
