"""Two products for every tap: one sums up its gradient, one is added into a shifted, strided slice of the image's gradient.

4 N K P Q (C/g) R S FLOPs in 2 R S matrix products; extra memory: the gradient of the output, the padded image and its
gradient, and one product, in the order of channels, images, pixels, so that one product serves the whole batch.
cpu.shift_matmul of conv2d, taken back.
"""

import numpy as np

from impls.contract import implementation
from impls.conv2d.geometry import pad


@implementation(device="cpu", family="shift", summary="NumPy: two matrix products per tap on shifted, strided slices")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    k, channels, *taps = weight.shape
    image = pad(input, padding).swapaxes(0, 1)
    grads = grad_output.swapaxes(0, 1).reshape(groups, k // groups, -1)
    mixers = np.ascontiguousarray(weight.reshape(groups, k // groups, channels, *taps).transpose(3, 4, 0, 2, 1))
    grad_image, grad_weight = np.zeros_like(image, order="C"), np.empty(weight.shape, weight.dtype)
    height, width = (stride[axis] * (grad_output.shape[2 + axis] - 1) + 1 for axis in (0, 1))
    for r, s in np.ndindex(*taps):
        top, left = r * dilation[0], s * dilation[1]
        seen = np.s_[:, :, top : top + height : stride[0], left : left + width : stride[1]]
        pixels = image[seen].reshape(groups, channels, -1)
        grad_weight[:, :, r, s] = (grads @ pixels.swapaxes(1, 2)).reshape(k, channels)
        grad_image[seen] += (mixers[r, s] @ grads).reshape(image[seen].shape)
    (top, _), (left, _) = padding
    inner = grad_image[:, :, top : top + input.shape[2], left : left + input.shape[3]]
    return np.ascontiguousarray(inner.swapaxes(0, 1)), grad_weight, grad_output.sum(axis=(0, 2, 3))
