"""One raw CUDA kernel: a thread for every output pixel, which reads its window and keeps one sum.

2 N K P Q (C/g) R S FLOPs, no extra memory: padding is skipped, not copied. Grid-stride loop:
https://developer.nvidia.com/blog/cuda-pro-tip-write-flexible-kernels-grid-stride-loops/
"""

import cupy

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_direct")

THREADS = 256  # a block; a multiple of the warp that divides every multiprocessor's limit

SOURCE = r"""
extern "C" __global__ void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long size, int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int taps_y, int taps_x,
    int stride_y, int stride_x, int top, int left, int dilation_y, int dilation_x)
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

KERNELS = {
    dtype: cupy.RawKernel(f"typedef {ctype} T;\n{SOURCE}", "conv2d")
    for dtype, ctype in (("float32", "float"), ("float64", "double"))
}


@implementation(device="cuda", family="direct", summary="CuPy raw kernel: a thread for every output", arrays="cupy")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if not output.size:
        return output
    _, channels, height, width = input.shape
    _, outputs, out_height, out_width = output.shape
    arguments = (
        cupy.ascontiguousarray(input),
        cupy.ascontiguousarray(weight),
        cupy.ascontiguousarray(bias) if bias is not None else cupy.uintp(0),  # a null pointer
        output,
        cupy.int64(output.size),
        *map(
            cupy.int32,
            (
                *(channels, height, width, outputs, out_height, out_width),
                *(weight.shape[1], outputs // groups, *weight.shape[2:]),
                *(*stride, padding[0][0], padding[1][0], *dilation),
            ),
        ),
    )
    blocks = min((output.size + THREADS - 1) // THREADS, 2**31 - 1)
    KERNELS[input.dtype.name]((blocks,), (THREADS,), arguments)
    return output
