"""One Numba kernel: a thread for every output pixel, which reads its window and keeps one sum.

2 N K P Q (C/g) R S FLOPs, no extra memory: padding is skipped, not copied. Numba takes CuPy's arrays as they are
(https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html) and waits before each launch for CuPy's stream.
"""

import cupy
import numpy as np
from numba import cuda

from impls.contract import Unavailable, implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_cupy

require_cupy("gpu.numba_direct")
if not cuda.is_available():
    raise Unavailable("gpu.numba_direct needs NVIDIA's compiler library, libNVVM, for Numba: pip install numba-cuda[cu13]")

try:
    if cuda.compile_ptx:  # Numba's simulator has none
        cuda.compile_ptx(lambda: None, (), cc=(9, 0))
except AttributeError as error:  # numba-cuda 0.30 names what NumPy 2.5 no longer has, and compiles nothing there
    raise Unavailable(
        f"gpu.numba_direct needs a numba-cuda that knows NumPy {np.__version__} ({error}): "
        "pip install --upgrade numba-cuda, or an older NumPy"
    ) from error

THREADS = 256  # a block; a multiple of the warp that divides every multiprocessor's limit


@cuda.jit
def _outputs(input, weight, bias, output, stride, before, dilation, group_outputs):
    _, outputs, out_height, out_width = output.shape
    _, channels, taps_y, taps_x = weight.shape
    height, width = input.shape[2:]
    # A grid-stride loop: any output size with any grid. Neighbouring threads read neighbouring pixels.
    for i in range(cuda.grid(1), output.size, cuda.gridsize(1)):
        q = i % out_width
        p = i // out_width % out_height
        k = i // (out_width * out_height) % outputs
        n = i // (out_width * out_height * outputs)
        first = k // group_outputs * channels
        total = bias[k]
        for c in range(channels):
            for r in range(taps_y):
                y = p * stride[0] + r * dilation[0] - before[0]
                if 0 <= y < height:
                    for s in range(taps_x):
                        x = q * stride[1] + s * dilation[1] - before[1]
                        if 0 <= x < width:
                            total += weight[k, c, r, s] * input[n, first + c, y, x]
        output[n, k, p, q] = total


@implementation(device="cuda", family="direct", summary="Numba for CUDA: one thread per output", arrays="cupy")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if not output.size:
        return output
    start = cupy.zeros(len(weight), input.dtype) if bias is None else cupy.ascontiguousarray(bias)
    arrays = cupy.ascontiguousarray(input), cupy.ascontiguousarray(weight), start, output
    before = padding[0][0], padding[1][0]
    blocks = min((output.size + THREADS - 1) // THREADS, 2**31 - 1)
    _outputs[blocks, THREADS](*arrays, stride, before, dilation, len(weight) // groups)
    return output
