"""cupyx.scipy.ndimage.correlate for every pair of channels, all images at once.

2 N K H W (C/g) R S FLOPs over the padded H x W, in float64 whatever the dtype; extra memory: the padded image and one
image of results. CuPy's function has neither stride nor dilation, and leaves out taps that are zero: if there are
any and an image is not finite, the patches are multiplied instead.
https://docs.cupy.dev/en/stable/reference/generated/cupyx.scipy.ndimage.correlate.html
"""

import cupy
import numpy as np
from cupyx.scipy.ndimage import correlate

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import by_definition, pad
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_ndimage")


@implementation(
    device="cuda",
    family="direct",
    summary="cupyx.scipy.ndimage.correlate, channel by channel",
    arrays="cupy",
    limits={"stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    shape = n, k, p, q = output_shape(input.shape, weight.shape, stride, padding, dilation)
    channels, *kernel = weight.shape[1:]
    # What it pads itself is not copied; otherwise the window begins at the output's own pixel, not around it.
    centred = padding == tuple((size // 2, size // 2) for size in kernel) and all(size % 2 for size in kernel)
    image, origin = (input, 0) if centred else (pad(input, padding), (0, *(-(size // 2) for size in kernel)))
    if not n or not ((weight != 0).all() or cupy.isfinite(input).all()):
        output = by_definition(pad(input, padding), weight, stride, dilation, groups)
    else:
        output = cupy.empty(shape, input.dtype)
        for j, c in np.ndindex(k, channels):
            source = image[:, j // (k // groups) * channels + c]
            found = correlate(source, weight[j, c][None], mode="constant", origin=origin)[:, :p, :q]
            if c:
                output[:, j] += found
            elif (k, channels) == (1, 1):
                output = found[:, None]
            else:
                output[:, j] = found
    if bias is not None:
        output += bias[:, None, None]
    return output
