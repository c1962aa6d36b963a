"""OpenCV for every step that it has: decode, resize, filter and paste by its vectorised functions, image by image.

6 R S + 30 FLOPs a pixel of a patch, by filter2D on three channels and their sum; extra memory: the decoded image and a few
arrays of a patch's size. https://docs.opencv.org/4.x/d4/d86/group__imgproc__filter.html
"""

import cv2
import numpy as np

from impls.contract import implementation
from impls.decode_jpeg.opencv_images import decode
from impls.preprocess.arguments import fit
from impls.preprocess.stages import crop, paste


@implementation(device="cpu", family="library", summary="OpenCV: only the region, one image at a time")
def preprocess(jpegs, regions, weight, threshold=0.0, size=128, mean=None, std=None):
    """N JPEGs to N masks (H, W)."""
    masks = []
    for i, region in enumerate(regions):
        pixels = decode(jpegs, i)
        response = convolve(to_patch(pixels, region, size, mean, std), weight)
        masks.append(finish(response, region, threshold, pixels.shape[:2]))
    return masks


def to_patch(pixels, region, size, mean, std):
    """The region as a normalised patch (size, size, 3)."""
    height, width = fit(region, size)
    # Converted before: of bytes OpenCV makes bytes again, rounded.
    part = cv2.resize(crop(pixels, region).astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    # Written as OpenCV does scalars, four of them for the last axis.
    part = cv2.multiply(cv2.subtract(part, (*(255.0 * mean).tolist(), 0)), (*(1 / (255.0 * std)).tolist(), 0))
    return cv2.copyMakeBorder(part, 0, size - height, 0, size - width, cv2.BORDER_CONSTANT, value=0)


def convolve(patch, weight):
    """The response (size, size)."""
    planes = cv2.split(patch)
    filtered = [
        cv2.filter2D(plane, cv2.CV_32F, kernel, borderType=cv2.BORDER_CONSTANT)
        for plane, kernel in zip(planes, weight[0], strict=True)
    ]
    return cv2.add(cv2.add(filtered[0], filtered[1]), filtered[2])


def finish(response, region, threshold, shape):
    """The mask of an image of this shape."""
    height, width = fit(region, len(response))
    _, marks = cv2.threshold(response[:height, :width], threshold, 255, cv2.THRESH_BINARY)
    return paste(marks.astype(np.uint8), region, shape)
