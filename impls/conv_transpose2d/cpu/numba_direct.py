"""Every output row gathered from the input rows that reach it, in Numba, threaded over output rows.

2 N C H W (K/g) R S FLOPs; extra memory: a row for each thread. With a stride, a tap reaches only every stride-th pixel. The
pixels of one remainder, a phase, lie side by side while they are summed, so that the innermost loop compiles to vector
instructions; the finished row is interleaved from its phases. That a strided transposed convolution is several dense ones,
interleaved: Shi et al., arXiv:1609.07009.
"""

import numpy as np
from numba import njit, prange

from impls.contract import implementation
from impls.conv_transpose2d.arguments import output_shape


@njit(parallel=True, cache=True, nogil=True, fastmath={"contract"})
def rows(input, weight, bias, output, stride, pad, dilation, groups):
    """Fill output (N, K, P, Q); every array C-contiguous. conv2d_backward has its input's gradient from here too."""
    n_images, n_outputs, height, width = output.shape
    _, outputs, taps_y, taps_x = weight.shape
    n_channels, in_height, in_width = input.shape[1:]
    channels = n_channels // groups
    n_phases = min(stride[1], width)
    phase_width = (width - 1) // n_phases + 1
    for row in prange(n_images * n_outputs * height):
        p = row % height
        k = row // height % n_outputs
        n = row // (height * n_outputs)
        first = k // outputs * channels
        phases = np.full((n_phases, phase_width), bias[k])
        for r in range(taps_y):
            y, rest = divmod(p + pad[0] - r * dilation[0], stride[0])
            if rest or y < 0 or y >= in_height:
                continue
            for s in range(taps_x):
                # Pixel x goes to q = x * stride + s * dilation - pad, which is place x + shift of its phase.
                shift, phase = divmod(s * dilation[1] - pad[1], stride[1])
                if phase >= n_phases:
                    continue
                # As slices: an index that starts at zero spares Numba its test for negative ones.
                start = max(0, -shift)
                stop = max(start, min(in_width, phase_width - shift))
                target = phases[phase, start + shift : stop + shift]
                for c in range(first, first + channels):
                    factor = weight[c, k % outputs, r, s]
                    pixels = input[n, c, y, start:stop]
                    for x in range(len(pixels)):
                        target[x] += factor * pixels[x]
        for phase in range(n_phases):
            target = output[n, k, p, phase::n_phases]
            for q in range(len(target)):
                target[q] = phases[phase, q]


@implementation(
    device="cpu", family="direct", summary="Numba: output rows gathered for each phase of the stride, vectorised, threaded"
)
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    shape = output_shape(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    output = np.empty(shape, input.dtype)
    start = np.zeros(shape[1], input.dtype) if bias is None else np.ascontiguousarray(bias)
    rows(np.ascontiguousarray(input), np.ascontiguousarray(weight), start, output, stride, padding, dilation, groups)
    return output
