"""scipy.signal.fftconvolve for every pair of channels, the kernel turned round: one transform as large as the image.

The transforms are as large as the image: Cooley and Tukey, Mathematics of Computation 19 (1965). About 5 N H W log2(H
W) FLOPs a transform, three transforms a pair of channels; extra memory: a few transformed images. SciPy's function has
neither stride nor dilation.
"""

import numpy as np
from scipy.signal import fftconvolve

from impls import checks
from impls.contract import implementation
from impls.conv2d import geometry
from impls.conv2d.arguments import output_shape


@implementation(
    device="cpu",
    family="fft",
    summary="scipy.signal.fftconvolve, channel by channel",
    limits={"stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = geometry.pad(input, padding)
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    # Two transforms of a plane, their product and the inverse transform, each about as large as two planes.
    plane = image[0, 0].nbytes if len(image) else 0
    checks.require_memory(8 * plane + image.nbytes + output.nbytes, "cpu.scipy_fft's transforms")
    outputs, channels = len(weight) // groups, weight.shape[1]
    for n, k, c in np.ndindex(len(input), len(weight), channels):
        output[n, k] += fftconvolve(image[n, k // outputs * channels + c], weight[k, c, ::-1, ::-1], mode="valid")
    geometry.add_bias(output, bias)
    return geometry.if_finite(output, input, weight, bias, stride, padding, dilation, groups)
