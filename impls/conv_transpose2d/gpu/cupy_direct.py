"""One raw CUDA kernel: a thread for every output pixel, which gathers the input pixels that reach it and keeps one sum.

2 N C H W (K/g) R S FLOPs, no extra memory: padding is skipped, not copied. cpu.numba_direct's gathering, a pixel a
thread.
"""

import cupy

from impls.contract import implementation
from impls.conv2d.devices import require_cupy
from impls.conv_transpose2d.arguments import output_shape

THREADS = 256  # a block; a multiple of the warp that divides every multiprocessor's limit

SOURCE = r"""
extern "C" __global__ void conv_transpose2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long size, int channels, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int taps_y, int taps_x,
    int stride_y, int stride_x, int top, int left, int dilation_y, int dilation_x)
{
    // A grid-stride loop: any output size with any grid. Neighbouring threads write neighbouring pixels.
    long long step = (long long)gridDim.x * blockDim.x;
    long long image = (long long)height * width;
    long long kernel = (long long)taps_y * taps_x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += step) {
        int q = (int)(i % out_width);
        long long rest = i / out_width;
        int p = (int)(rest % out_height);
        rest /= out_height;
        int k = (int)(rest % outputs);
        long long n = rest / outputs;
        int first = k / group_outputs * group_channels;
        const T* images = input + (n * channels + first) * image;
        const T* kernels = weight + ((long long)first * group_outputs + k % group_outputs) * kernel;
        T sum = bias ? bias[k] : (T)0;
        // Channels innermost: whether a tap reaches this pixel takes a division, and is the same for all of them.
        for (int r = 0; r < taps_y; ++r) {
            long long y = (long long)p + top - (long long)r * dilation_y;
            if (y < 0 || y % stride_y || y / stride_y >= height) continue;
            for (int s = 0; s < taps_x; ++s) {
                long long x = (long long)q + left - (long long)s * dilation_x;
                if (x < 0 || x % stride_x || x / stride_x >= width) continue;
                const T* pixel = images + y / stride_y * width + x / stride_x;
                const T* tap = kernels + (long long)r * taps_x + s;
                for (int c = 0; c < group_channels; ++c) sum += tap[c * group_outputs * kernel] * pixel[c * image];
            }
        }
        output[i] = sum;
    }
}
"""

require_cupy("gpu.cupy_direct")

KERNELS = {
    dtype: cupy.RawKernel(f"typedef {ctype} T;\n{SOURCE}", "conv_transpose2d")
    for dtype, ctype in (("float32", "float"), ("float64", "double"))
}


def fill(input, weight, bias, output, stride, padding, dilation):
    """Fill output (N, K, P, Q), C-contiguous. conv2d_backward has its input's gradient from here too."""
    arguments = (
        cupy.ascontiguousarray(input),
        cupy.ascontiguousarray(weight),
        cupy.ascontiguousarray(bias) if bias is not None else cupy.uintp(0),  # a null pointer
        output,
        cupy.int64(output.size),
        *map(
            cupy.int32,
            (
                *(*input.shape[1:], *output.shape[1:]),
                *(input.shape[1] * weight.shape[1] // output.shape[1], *weight.shape[1:]),
                *(*stride, *padding, *dilation),
            ),
        ),
    )
    if output.size:
        blocks = min((output.size + THREADS - 1) // THREADS, 2**31 - 1)
        KERNELS[input.dtype.name]((blocks,), (THREADS,), arguments)


@implementation(device="cuda", family="direct", summary="CuPy raw kernel: one thread gathers each output", arrays="cupy")
def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """Lay the kernels of weight (C, K/groups, R, S), scaled by the pixels of input (N, C, H, W), on the output and add."""
    shape = output_shape(input.shape, weight.shape, stride, padding, output_padding, groups, dilation)
    output = cupy.empty(shape, input.dtype)
    fill(input, weight, bias, output, stride, padding, dilation)
    return output
