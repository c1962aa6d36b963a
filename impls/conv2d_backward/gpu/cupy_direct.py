"""The raw CUDA kernel of the transposed convolution for the input's gradient, and another for the weight's.

4 N K P Q (C/g) R S FLOPs, the first half by conv_transpose2d's gpu.cupy_direct. A weight has few taps and every tap
many products, so that several threads share a tap, each summing some rows of the output's gradient; their sums are
added up at the end, in one order every time (no atomic additions); extra memory: these sums, as many as the weight has
elements or PARTIAL. Padding is skipped, not copied.
"""

import cupy

from impls.contract import implementation
from impls.conv2d.devices import require_cupy
from impls.conv_transpose2d.gpu import cupy_direct as transposed

THREADS = 256  # a block; a multiple of the warp that divides every multiprocessor's limit
PARTIAL = 1 << 18  # threads that keep every multiprocessor of a large device busy

SOURCE = r"""
extern "C" __global__ void grad_weight(
    const T* __restrict__ grad_output, const T* __restrict__ input, T* __restrict__ partial,
    long long size, long long rows, long long parts,
    int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int taps_y, int taps_x,
    int stride_y, int stride_x, int top, int left, int dilation_y, int dilation_x)
{
    // A grid-stride loop: any size with any grid.
    // Thread i has tap i % size and every parts-th row. Neighbouring threads read one gradient and neighbouring pixels.
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size * parts; i += step) {
        long long rest = i % size;
        int s = (int)(rest % taps_x);
        rest /= taps_x;
        int r = (int)(rest % taps_y);
        rest /= taps_y;
        int c = (int)(rest % group_channels);
        int k = (int)(rest / group_channels);
        int channel = k / group_outputs * group_channels + c;
        long long offset = (long long)s * dilation_x - left;
        T sum = 0;
        for (long long row = i / size; row < rows; row += parts) {
            long long n = row / out_height;
            long long p = row % out_height;
            long long y = p * stride_y + (long long)r * dilation_y - top;
            if (y < 0 || y >= height) continue;
            const T* grads = grad_output + ((n * outputs + k) * out_height + p) * out_width;
            const T* pixels = input + ((n * channels + channel) * height + y) * width;
            for (int q = 0; q < out_width; ++q) {
                long long x = (long long)q * stride_x + offset;
                if (x >= 0 && x < width) sum += grads[q] * pixels[x];
            }
        }
        partial[i] = sum;
    }
}
"""

require_cupy("gpu.cupy_direct")

KERNELS = {
    dtype: cupy.RawKernel(f"typedef {ctype} T;\n{SOURCE}", "grad_weight")
    for dtype, ctype in (("float32", "float"), ("float64", "double"))
}


@implementation(
    device="cuda", family="direct", summary="CuPy raw kernels: gathered pixels, taps split between threads", arrays="cupy"
)
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    grads, before = cupy.ascontiguousarray(grad_output), (padding[0][0], padding[1][0])
    rows = grads.shape[0] * grads.shape[2]
    parts = max(1, min(rows, PARTIAL // weight.size))
    grad_input, partial = cupy.empty(input.shape, input.dtype), cupy.empty((parts, *weight.shape), input.dtype)
    transposed.fill(grads, weight, None, grad_input, stride, before, dilation)
    numbers = (
        *(*input.shape[1:], *grads.shape[1:]),
        *(weight.shape[1], len(weight) // groups, *weight.shape[2:]),
        *(*stride, *before, *dilation),
    )
    arguments = (
        *(grads, cupy.ascontiguousarray(input), partial),
        *(*map(cupy.int64, (weight.size, rows, parts)), *map(cupy.int32, numbers)),
    )
    blocks = min((partial.size + THREADS - 1) // THREADS, 2**31 - 1)
    KERNELS[input.dtype.name]((blocks,), (THREADS,), arguments)
    return grad_input, partial.sum(axis=0), grads.sum(axis=(0, 2, 3))
