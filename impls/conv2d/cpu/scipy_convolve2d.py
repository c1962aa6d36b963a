"""scipy.signal.convolve2d for every pair of channels, the kernel turned round.

2 N K P Q (C/g) R S FLOPs, extra memory: the padded image and one image of results. SciPy's function has neither stride
nor dilation. https://docs.scipy.org/doc/scipy/reference/generated/scipy.signal.convolve2d.html
"""

import numpy as np
from scipy.signal import convolve2d

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import add_bias, pad


@implementation(
    device="cpu",
    family="direct",
    summary="scipy.signal.convolve2d, channel by channel",
    limits={"stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image = pad(input, padding)
    output = np.zeros(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    outputs, channels = len(weight) // groups, weight.shape[1]
    for n, k, c in np.ndindex(len(input), len(weight), channels):
        output[n, k] += convolve2d(image[n, k // outputs * channels + c], weight[k, c, ::-1, ::-1], mode="valid")
    return add_bias(output, bias)
