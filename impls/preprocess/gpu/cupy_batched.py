"""CuPy's functions on a batch: all regions go to the device in one piece, and all marks come back in one.

6 R S + 30 FLOPs a pixel of a patch. Each region is resized by itself; then all are normalised, convolved and compared at
once; extra memory: the batch (N, 3, size, size) and the responses. OpenCV decodes, on the CPU.
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

require_cupy("gpu.cupy_batched")
CONVOLVE = contract.load("gpu.cupy_direct")


@implementation(device="cuda", family="numpy", summary="CuPy: only the region, all images in one batch, transfers included")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    images, parts = [], []
    for i, region in enumerate(regions):
        images.append(decode(jpegs, i))
        parts.append(crop(images[i], region).reshape(-1))
    pixels = upload(np.concatenate(parts))
    marks = download(compute(pixels, upload(weight), upload(mean), upload(std), regions, threshold, size))
    masks = []
    for each, region, image in zip(marks, regions, images, strict=True):
        height, width = fit(region, size)
        masks.append(paste(each[:height, :width], region, image.shape[:2]))
    return masks


def upload(array):
    """An array on the device."""
    return cupy.asarray(array)


def compute(pixels, weight, mean, std, regions, threshold, size):
    """The marks (N, size, size) of all regions' pixels: all that the device does, waited for."""
    patches = cupy.zeros((len(regions), 3, size, size), np.float32)
    first = 0
    for patch, region in zip(patches, regions, strict=True):
        shape = region.height, region.width, 3
        part = pixels[first : first + np.prod(shape)].reshape(shape)
        first += part.size
        height, width = fit(region, size)
        part = (resize(cupy, part.astype(np.float32), height, width) / np.float32(255) - mean) / std
        patch[:, :height, :width] = part.transpose(2, 0, 1)
    marks = mark(CONVOLVE(patches, weight, padding="same")[:, 0], threshold)
    cupy.cuda.get_current_stream().synchronize()
    return marks


def download(array):
    """An array of the device as one of NumPy, once it is computed."""
    return cupy.asnumpy(array)
