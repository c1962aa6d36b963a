"""A raw CUDA kernel for any convolution, one thread per output: the fallback if other kernels lack memory."""

from __future__ import annotations

import cupy

from impls.checks import Pair
from impls.conv2d.cupy_arrays import raw_kernel

THREADS = 256  # of a block; a multiple of the warp that divides every multiprocessor's limit
BLOCKS = 2**31 - 1  # that a grid has at most

SOURCE = r"""
extern "C" __global__ void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long size, int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int top, int left,
    int taps_y, int taps_x, int stride_y, int stride_x, int dilation_y, int dilation_x)
{
    // A grid-stride loop: any output size with any grid. Neighbouring threads read neighbouring pixels.
    long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
        int q = (int)(i % out_width);
        long long rest = i / out_width;
        int p = (int)(rest % out_height);
        rest /= out_height;
        int k = (int)(rest % outputs);
        long long n = rest / outputs;
        int first = k / group_outputs * group_channels;
        T sum = bias ? bias[k] : (T)0;
        for (int c = 0; c < group_channels; ++c) {
            const T* image = input + (n * channels + first + c) * (long long)height * width;
            const T* taps = weight + ((long long)k * group_channels + c) * taps_y * taps_x;
            for (int r = 0; r < taps_y; ++r) {
                long long y = (long long)p * stride_y + (long long)r * dilation_y - top;
                if (y < 0 || y >= height) continue;
                for (int s = 0; s < taps_x; ++s) {
                    long long x = (long long)q * stride_x + (long long)s * dilation_x - left;
                    if (x >= 0 && x < width) sum += taps[(long long)r * taps_x + s] * image[y * width + x];
                }
            }
        }
        output[i] = sum;
    }
}
"""


def pixel_by_pixel(
    image: cupy.ndarray,
    weight: cupy.ndarray,
    bias: cupy.ndarray | cupy.uintp,
    output: cupy.ndarray,
    stride: Pair,
    before: Pair,
    dilation: Pair,
    groups: int,
) -> None:
    """Fill output (N, K, P, Q) with the convolution of contiguous arrays; before: the padding above and to the left."""
    (_, channels, height, width), (k, group_channels, *taps), (_, _, p, q) = image.shape, weight.shape, output.shape
    numbers = channels, height, width, k, p, q, group_channels, k // groups, *before, *taps, *stride, *dilation
    blocks = min(-(-output.size // THREADS), BLOCKS)
    kernel = raw_kernel(SOURCE, "conv2d", output.dtype.name)
    kernel((blocks,), (THREADS,), (image, weight, bias, output, cupy.int64(output.size), *map(cupy.int32, numbers)))
