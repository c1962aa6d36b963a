"""OpenCV's filter2D for every pair of channels: vectorised loops for small kernels, a Fourier transform for large ones.

2 N K P Q (C/g) R S FLOPs or fewer; extra memory: the padded image unless the padding keeps the size, and one image of
results. filter2D has neither stride nor dilation, and leaves out taps that are zero, so that there a NaN or infinite
pixel does not count. By Fourier it rounds whole numbers too.
https://docs.opencv.org/4.x/d4/d86/group__imgproc__filter.html
"""

import math

import cv2
import numpy as np

from impls.contract import implementation
from impls.conv2d import geometry

FOURIER = 50  # taps from which OpenCV may transform; in float32 it begins at 11x11


@implementation(
    device="cpu", family="library", summary="OpenCV's filter2D, channel by channel", limits={"stride": 1, "dilation": 1}
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = geometry.empty(input, weight, stride, padding, dilation, out)
    _, k, p, q = output.shape
    channels, *kernel = weight.shape[1:]
    # Where padding keeps the size, OpenCV puts the zeros there itself and no image is copied.
    keeps = all(sum(pads) == taps - 1 for pads, taps in zip(padding, kernel, strict=True))
    image = np.ascontiguousarray(input if keeps else geometry.pad(input, padding))
    anchor = (padding[1][0], padding[0][0]) if keeps else (0, 0)
    taps = np.ascontiguousarray(weight)
    for n, j in np.ndindex(len(input), k):
        for c in range(channels):
            source = image[n, j // (k // groups) * channels + c]
            plane = cv2.filter2D(source, -1, taps[j, c], anchor=anchor, borderType=cv2.BORDER_CONSTANT)[:p, :q]
            if c:
                output[n, j] += plane
            else:
                output[n, j] = plane
    geometry.add_bias(output, bias)
    if math.prod(kernel) < FOURIER:
        return output
    return geometry.if_finite(output, input, weight, bias, stride, padding, dilation, groups)
