"""scipy.ndimage.correlate for every pair of channels.

2 N K P Q (C/g) R S FLOPs in float64, whatever the dtype; extra memory: the padded image and one image of results.
SciPy's function has neither stride nor dilation, and leaves out taps that are smaller than 2.2e-16: such kernels, and
images that are not finite, whose zeros in the kernel would count, go another way.
https://docs.scipy.org/doc/scipy/reference/generated/scipy.ndimage.correlate.html
"""

import numpy as np
from scipy.ndimage import correlate

from impls.contract import implementation
from impls.conv2d import geometry
from impls.conv2d.arguments import output_shape

MIN_TAP = np.finfo(np.float64).eps  # of a tap that SciPy takes: NI_Correlate in scipy/ndimage/src/ni_filters.c


@implementation(
    device="cpu",
    family="direct",
    summary="scipy.ndimage.correlate, channel by channel",
    limits={"stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    if not np.all((abs(weight) > MIN_TAP) | (weight == 0)) or not np.isfinite(input).all():
        return geometry.by_definition(input, weight, bias, stride, padding, dilation, groups)
    image = geometry.pad(input, padding)
    if 0 in image.strides:  # SciPy 1.17 has wrong sums of an image that is one number in memory
        image = np.ascontiguousarray(image)
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    _, k, p, q = output.shape
    channels, *kernel = weight.shape[1:]
    # The window begins at the output's own pixel, not around it.
    origin = [-(size // 2) for size in kernel]
    for n, j, c in np.ndindex(len(input), k, channels):
        source = image[n, j // (k // groups) * channels + c]
        output[n, j] += correlate(source, weight[j, c], mode="constant", origin=origin)[:p, :q]
    return geometry.add_bias(output, bias)
