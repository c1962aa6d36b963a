"""Fast Fourier transforms batched over channels: one for every image and kernel, products summed.

Mathieu, Henaff and LeCun, arXiv 1312.5851. About 5 H W log2(H W) FLOPs a transform, N C + K C/g + N K of them, and
4 N K (C/g) H W for the products, whatever the kernel's size; extra memory: the transforms, each as large as its image.
One NaN, infinity or overflow makes all of an output image non-finite, so one pixel of each is looked at, for which the
call waits for the device. Products are in full precision unless CUPY_TF32 is set.
"""

import cupy
import numpy as np
from cupyx.scipy.fft import next_fast_len

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import by_definition, pad
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_fft")


@implementation(
    device="cuda", family="fft", summary="CuPy: FFT batched over channels, summed before the inverse transform", arrays="cupy"
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    n, k, p, q = shape = output_shape(input.shape, weight.shape, stride, padding, dilation)
    if not n:
        return cupy.empty(shape, input.dtype)  # cuFFT refuses an empty batch
    image = pad(input, padding)
    # A circular correlation as large as the image is right wherever the window does not wrap: in all of "valid".
    size = tuple(map(next_fast_len, image.shape[2:]))
    spans = (d * (taps - 1) + 1 for d, taps in zip(dilation, weight.shape[2:], strict=True))
    spread = cupy.zeros((*weight.shape[:2], *spans), weight.dtype)
    spread[:, :, :: dilation[0], :: dilation[1]] = weight
    images, kernels = cupy.fft.rfft2(image, size), cupy.fft.rfft2(spread, size).conj()
    frequencies = images.shape[2:]
    images = images.reshape(n, groups, -1, *frequencies)
    kernels = kernels.reshape(groups, k // groups, -1, *frequencies)
    products = cupy.einsum("ngcyx,gkcyx->ngkyx", images, kernels).reshape(n, k, *frequencies)
    full = cupy.fft.irfft2(products, size)
    height, width = stride[0] * (p - 1) + 1, stride[1] * (q - 1) + 1
    output = cupy.ascontiguousarray(full[:, :, : height : stride[0], : width : stride[1]])
    finite = cupy.asnumpy(cupy.isfinite(output[:, :, 0, 0]).all(axis=1))
    for i in np.flatnonzero(~finite):
        output[i : i + 1] = by_definition(image[i : i + 1], weight, stride, dilation, groups)
    if bias is not None:
        output += bias[:, None, None]
    return output
