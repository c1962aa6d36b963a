"""Two raw CUDA kernels: a thread for every pixel of the input's gradient, and many for every tap of the weight's.

4 N K P Q (C/g) R S FLOPs, the first as gpu.cupy_direct of conv_transpose2d does it. A weight has few taps and every tap
many products, so that several threads share a tap, each summing some rows of the output's gradient; their sums are
added up at the end, in one order every time (no atomic additions); extra memory: these sums, as many as the weight has
elements or PARTIAL. Padding is skipped, not copied.
"""

import cupy

from impls.contract import implementation
from impls.conv2d.devices import require_cupy

THREADS = 256  # a block; a multiple of the warp that divides every multiprocessor's limit
PARTIAL = 1 << 18  # threads that keep every multiprocessor of a large device busy

SOURCE = r"""
extern "C" __global__ void grad_input(
    const T* __restrict__ grad_output, const T* __restrict__ weight, T* __restrict__ result,
    long long size, int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int taps_y, int taps_x,
    int stride_y, int stride_x, int top, int left, int dilation_y, int dilation_x)
{
    // Grid-stride loops: any size with any grid. Neighbouring threads write neighbouring pixels.
    long long step = (long long)gridDim.x * blockDim.x;
    long long plane = (long long)out_height * out_width;
    long long kernel = (long long)group_channels * taps_y * taps_x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
        int x = (int)(i % width);
        long long rest = i / width;
        int y = (int)(rest % height);
        rest /= height;
        int c = (int)(rest % channels);
        long long n = rest / channels;
        int first = c / group_channels * group_outputs;
        const T* planes = grad_output + (n * outputs + first) * plane;
        const T* kernels = weight + first * kernel + (long long)(c % group_channels) * taps_y * taps_x;
        T sum = 0;
        // Outputs innermost: whether a tap saw this pixel takes a division, and is the same for all of them.
        for (int r = 0; r < taps_y; ++r) {
            long long p = (long long)y + top - (long long)r * dilation_y;
            if (p < 0 || p % stride_y || p / stride_y >= out_height) continue;
            for (int s = 0; s < taps_x; ++s) {
                long long q = (long long)x + left - (long long)s * dilation_x;
                if (q < 0 || q % stride_x || q / stride_x >= out_width) continue;
                const T* grad = planes + p / stride_y * out_width + q / stride_x;
                const T* tap = kernels + (long long)r * taps_x + s;
                for (int k = 0; k < group_outputs; ++k) sum += tap[k * kernel] * grad[k * plane];
            }
        }
        result[i] = sum;
    }
}

extern "C" __global__ void grad_weight(
    const T* __restrict__ grad_output, const T* __restrict__ input, T* __restrict__ partial,
    long long size, long long rows, long long parts,
    int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int taps_y, int taps_x,
    int stride_y, int stride_x, int top, int left, int dilation_y, int dilation_x)
{
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
    (name, dtype): cupy.RawKernel(f"typedef {ctype} T;\n{SOURCE}", name)
    for name in ("grad_input", "grad_weight")
    for dtype, ctype in (("float32", "float"), ("float64", "double"))
}


def _launch(name, threads, dtype, *arguments):
    if threads:
        blocks = min((threads + THREADS - 1) // THREADS, 2**31 - 1)
        KERNELS[name, dtype]((blocks,), (THREADS,), arguments)


@implementation(device="cuda", family="direct", summary="CuPy raw kernels: gathered pixels, taps shared out", arrays="cupy")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    grads, dtype = cupy.ascontiguousarray(grad_output), input.dtype.name
    rows = grads.shape[0] * grads.shape[2]
    parts = max(1, min(rows, PARTIAL // weight.size))
    grad_input, partial = cupy.empty(input.shape, input.dtype), cupy.empty((parts, *weight.shape), input.dtype)
    numbers = (
        *(*input.shape[1:], *grads.shape[1:]),
        *(weight.shape[1], len(weight) // groups, *weight.shape[2:]),
        *(*stride, padding[0][0], padding[1][0], *dilation),
    )
    shape = tuple(map(cupy.int32, numbers))
    arrays = grads, cupy.ascontiguousarray(weight), grad_input
    _launch("grad_input", grad_input.size, dtype, *arrays, cupy.int64(grad_input.size), *shape)
    arrays = grads, cupy.ascontiguousarray(input), partial
    _launch("grad_weight", partial.size, dtype, *arrays, *map(cupy.int64, (weight.size, rows, parts)), *shape)
    return grad_input, partial.sum(axis=0), grads.sum(axis=(0, 2, 3))
