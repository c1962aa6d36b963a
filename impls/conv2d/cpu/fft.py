"""Fast Fourier transforms batched over channels: one for every image and kernel, products summed.

Mathieu, Henaff and LeCun, arXiv 1312.5851. About 5 H W log2(H W) FLOPs a transform, N C + K C/g + N K of them, and 4 N
K (C/g) H W for the products, whatever the kernel's size; extra memory: the transforms, each as large as its image, and
their copies in the products' order.
"""

import numpy as np
from scipy import fft

from impls import checks
from impls.contract import implementation
from impls.conv2d import geometry
from impls.conv2d.arguments import output_shape


@implementation(device="cpu", family="fft", summary="scipy.fft batched over channels, summed before the inverse transform")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = geometry.pad(input, padding)
    n, k, p, q = output_shape(input.shape, weight.shape, stride, padding, dilation)
    # A circular correlation as large as the image is right wherever the window does not wrap: in all of "valid".
    size = [fft.next_fast_len(length, real=True) for length in image.shape[2:]]
    planes = n * image.shape[1] + weight.shape[0] * weight.shape[1] + n * k
    checks.require_memory(2 * planes * size[0] * (size[1] // 2 + 1) * 2 * input.itemsize, "cpu.fft's transforms")
    spread = np.zeros(
        (*weight.shape[:2], *(d * (t - 1) + 1 for d, t in zip(dilation, weight.shape[2:], strict=True))), weight.dtype
    )
    spread[:, :, :: dilation[0], :: dilation[1]] = weight
    # Frequencies first, so that each has one matrix product over channels: (N, C/g) @ (C/g, K/g).
    images = fft.rfft2(image, size).reshape(n, groups, weight.shape[1], size[0], size[1] // 2 + 1).transpose(1, 3, 4, 0, 2)
    kernels = fft.rfft2(spread, size).conj().reshape(groups, k // groups, -1, *images.shape[1:3]).transpose(0, 3, 4, 2, 1)
    products = (images @ kernels).transpose(3, 0, 4, 1, 2).reshape(n, k, *images.shape[1:3])
    full = fft.irfft2(products, size)
    height, width = stride[0] * (p - 1) + 1, stride[1] * (q - 1) + 1
    output = np.ascontiguousarray(full[:, :, : height : stride[0], : width : stride[1]])
    geometry.add_bias(output, bias)
    return geometry.if_finite(output, input, weight, bias, stride, padding, dilation, groups)
