"""Raw CUDA kernels: a tile of outputs for each thread, summed in registers; rows are read 128 bits at a time.

2 N K P Q (C/g) R S FLOPs, no extra memory: padding is skipped, not copied. A tile is some rows of four outputs (two in
float64) in up to four output channels. Its thread reads each row of input once, for all rows and taps that see it, and keeps
sums and weights in registers: Iandola et al., "Communication-minimizing 2D convolution in GPU registers", ICIP 2013. The
CUDA kernel is compiled for each kernel size, stride and tile. What is too large for registers has one that sums an output a
thread.
"""

import functools
import itertools
import math

import cupy

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import MULTIPROCESSOR, OTHERS, REGISTERS, WIDEST, at_once, even, or_null, raw_kernel
from impls.conv2d.cupy_pixels import pixel_by_pixel
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_direct")

THREADS = 128  # of a block at most; a multiple of the warp that divides every multiprocessor's limit
WARP = 32
DEEPEST = 64  # threads of a block along z
RESIDENT = 4  # blocks of a multiprocessor at most: with more, a thread lacks registers to read rows ahead
LINES = 64  # rows of input that a tile may see; the loop over them is unrolled
BUSY = 1 << 16  # threads that keep a large device busy: where a problem has fewer, tiles are smaller

TILES = r"""
#define SIDE (16 / (int)sizeof(T))  // outputs of a tile side by side
#define TAPS (TAPS_Y * TAPS_X)
#define SPAN_Y ((ROWS - 1) * STRIDE_Y + (TAPS_Y - 1) * DILATION_Y + 1)  // rows and columns of input that a tile sees
#define SPAN_X ((SIDE - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + 1)
#define PARTS ((SHIFT + SPAN_X + LOAD - 1) / LOAD)

struct alignas(LOAD * sizeof(T)) Loaded { T at[LOAD]; };
struct alignas(STORE * sizeof(T)) Stored { T at[STORE]; };

// Add what a tile sees to its sums, its first pixel at y, x; whether its rows and its columns are known to lie in the image.
template <bool ROWS_INSIDE, bool COLUMNS_INSIDE> __device__ __forceinline__ void add(
    T (&sum)[OUTPUTS][ROWS][SIDE], const T* __restrict__ source, const T* __restrict__ taps, const INDEX y, const INDEX x,
    const int height, const int width, const int group_channels)
{
    for (int c = 0; c < group_channels; ++c, source += (INDEX)height * width, taps += TAPS) {
        T factors[OUTPUTS][TAPS];
        #pragma unroll
        for (int o = 0; o < OUTPUTS; ++o)
            #pragma unroll
            for (int tap = 0; tap < TAPS; ++tap) factors[o][tap] = taps[(INDEX)o * group_channels * TAPS + tap];
        #pragma unroll
        for (int line = 0; line < SPAN_Y; ++line) {
            if (!ROWS_INSIDE && (y + line < 0 || y + line >= height)) continue;
            T pixels[PARTS * LOAD];
            #pragma unroll
            for (int part = 0; part < PARTS; ++part) {
                // The width is a multiple of LOAD, as x is: a part lies in the image or outside, whole.
                const INDEX column = x + part * LOAD;
                Loaded found = {};
                if (COLUMNS_INSIDE || (column >= 0 && column < width))
                    found = *reinterpret_cast<const Loaded*>(source + (y + line) * width + column);
                #pragma unroll
                for (int i = 0; i < LOAD; ++i) pixels[part * LOAD + i] = found.at[i];
            }
            #pragma unroll
            for (int r = 0; r < TAPS_Y; ++r) {
                const int above = line - r * DILATION_Y, row = above / STRIDE_Y;  // the output that sees it through r
                if (above < 0 || above % STRIDE_Y != 0 || row >= ROWS) continue;
                #pragma unroll
                for (int o = 0; o < OUTPUTS; ++o)
                    #pragma unroll
                    for (int s = 0; s < TAPS_X; ++s)
                        #pragma unroll
                        for (int side = 0; side < SIDE; ++side)
                            sum[o][row][side] +=
                                factors[o][r * TAPS_X + s] * pixels[SHIFT + side * STRIDE_X + s * DILATION_X];
            }
        }
    }
}

extern "C" __global__ __launch_bounds__(THREADS, RESIDENT) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int blocks_x, int blocks_y, int height, int width, int outputs, int out_height, int out_width,
    int group_channels, int group_outputs, int top, int left)
{
    const unsigned int place = blockIdx.x / blocks_x;  // blocks of tiles along x, along y, then of planes
    const INDEX q = ((INDEX)(blockIdx.x % blocks_x) * blockDim.x + threadIdx.x) * SIDE;
    const INDEX p = ((INDEX)(place % blocks_y) * blockDim.y + threadIdx.y) * ROWS;
    // OUTPUTS channels of one image, and the group they are of, counted through all images.
    const unsigned INDEX plane = (unsigned INDEX)(place / blocks_y) * blockDim.z + threadIdx.z;
    if (q >= out_width || p >= out_height || plane >= (unsigned INDEX)planes) return;
    const INDEX y = p * STRIDE_Y - top, x = q * STRIDE_X - left - SHIFT;
    const INDEX k = plane % (outputs / OUTPUTS) * OUTPUTS, group = plane / (group_outputs / OUTPUTS);
    const T* source = input + group * group_channels * height * width;
    const T* taps = weight + k * group_channels * TAPS;
    T sum[OUTPUTS][ROWS][SIDE];
    #pragma unroll
    for (int o = 0; o < OUTPUTS; ++o)
        #pragma unroll
        for (int row = 0; row < ROWS; ++row)
            #pragma unroll
            for (int side = 0; side < SIDE; ++side) sum[o][row][side] = bias ? bias[k + o] : (T)0;
    const bool rows = y >= 0 && y + SPAN_Y <= height;
    // A warp takes one way, lest it take two after the other.
    if (__all_sync(__activemask(), rows && x >= 0 && x + PARTS * LOAD <= width))
        add<true, true>(sum, source, taps, y, x, height, width, group_channels);
    else if (rows)
        add<true, false>(sum, source, taps, y, x, height, width, group_channels);
    else
        add<false, false>(sum, source, taps, y, x, height, width, group_channels);
    #pragma unroll
    for (int o = 0; o < OUTPUTS; ++o)
        #pragma unroll
        for (int row = 0; row < ROWS; ++row)
            #pragma unroll
            for (int side = 0; side < SIDE; side += STORE) {
                if (p + row >= out_height || q + side >= out_width) continue;
                Stored made;
                #pragma unroll
                for (int i = 0; i < STORE; ++i) made.at[i] = sum[o][row][side + i];
                const INDEX at = (((INDEX)plane * OUTPUTS + o) * out_height + p + row) * out_width + q + side;
                *reinterpret_cast<Stored*>(output + at) = made;
            }
}
"""


@implementation(device="cuda", family="direct", summary="CuPy raw kernel: a tile of outputs in registers", arrays="cupy")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if output.size:
        image, taps, start = cupy.ascontiguousarray(input), cupy.ascontiguousarray(weight), or_null(bias)
        before, widths = (padding[0][0], padding[1][0]), (at_once(image), at_once(output))
        shapes = input.shape, weight.shape, output.shape
        if found := launch(*shapes, stride, before, dilation, groups, input.dtype.name, *widths):
            kernel, grid, block, numbers = found
            kernel(grid, block, (image, taps, start, output, *numbers))
        else:
            pixel_by_pixel(image, taps, start, output, stride, before, dilation, groups)
    return output


@functools.lru_cache(maxsize=1024)
def launch(input, weight, output, stride, before, dilation, groups, dtype, load, store):
    """The kernel for a problem given by its shapes, its grid and block, its arguments after the arrays; None if too large.

    load, store: elements that may be read and written at once where input and output begin.
    """
    (n, _, height, width), (k, group_channels, *taps), (_, _, p, q) = input, weight, output
    numbers = (height, width, k, p, q, group_channels, k // groups, *before)
    size, itemsize = math.prod(output), 8 if dtype == "float64" else 4
    side, load, store = WIDEST // itemsize, math.gcd(load, width), math.gcd(store, q)
    shift = -before[1] % load  # from where `load` elements may be read at once to the tile's first pixel
    pixels = shift + (side - 1) * stride[1] + (taps[1] - 1) * dilation[1] + load
    tiles = []
    for outputs, rows in itertools.product((4, 3, 2, 1), (8, 4, 2, 1)):
        registers = (outputs * (math.prod(taps) + rows * side) + pixels) * itemsize // 4
        lines = (rows - 1) * stride[0] + (taps[0] - 1) * dilation[0] + 1
        if rows <= p and k // groups % outputs == 0 and registers <= REGISTERS and lines <= LINES:
            busy = n * (k // outputs) * -(-p // rows) * -(-q // side) >= BUSY
            tiles.append((busy, outputs * rows if busy else -outputs * rows, outputs, rows, registers))
    if not tiles:
        return None
    _, _, outputs, rows, registers = max(tiles)
    planes, tiles_x, tiles_y = n * (k // outputs), -(-q // side), -(-p // rows)
    block_x = even(tiles_x, WARP)
    block_y = even(tiles_y, THREADS // block_x)
    block_z = min(planes, DEEPEST, THREADS // (block_x * block_y))
    blocks_x, blocks_y = -(-tiles_x // block_x), -(-tiles_y // block_y)
    # What is counted: elements, and the coordinates of all that tiles see, also outside of the image.
    reach = (
        (tiles_y + block_y) * rows * stride[0] + before[0] + LINES,
        (tiles_x + block_x) * side * stride[1] + before[1] + REGISTERS,
    )
    counted = max(*reach, math.prod(input), math.prod(weight), size)
    constants = {"INDEX": "int" if counted < 2**31 else "long long", "THREADS": THREADS, "OUTPUTS": outputs, "ROWS": rows}
    constants["RESIDENT"] = min(RESIDENT, MULTIPROCESSOR // (THREADS * (registers + OTHERS)))
    constants |= {"TAPS_Y": taps[0], "STRIDE_Y": stride[0], "DILATION_Y": dilation[0]}
    constants |= {"TAPS_X": taps[1], "STRIDE_X": stride[1], "DILATION_X": dilation[1]}
    constants |= {"LOAD": load, "SHIFT": shift, "STORE": store}
    blocks = blocks_x * blocks_y * -(-planes // block_z)
    numbers = cupy.int64(planes), *map(cupy.int32, (blocks_x, blocks_y, *numbers))
    return raw_kernel(TILES, "conv2d", dtype, **constants), (blocks,), (block_x, block_y, block_z), numbers
