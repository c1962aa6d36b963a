"""A raw CUDA kernel for layers whose every output sees one channel: tiles in shared memory, small images many a block.

2 N K P Q R S FLOPs, no extra memory. A block copies tiles of input, with the zeros around them, into shared memory, each row
128 bits at a time, and whole images, as many as make up a tile, where they are small: 7x7 images fill a block as 512x512
ones do. Neighbouring threads then sum neighbouring columns of a few rows, for each of a channel's outputs from the same tile.
The kernel is compiled for each tile and kernel size. A tile that shared memory cannot hold is read from where it lies.
https://developer.nvidia.com/blog/using-shared-memory-cuda-cc/
"""

import functools
import math

import cupy

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import WIDEST, at_once, even, or_null, raw_kernel
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_depthwise")

THREADS = 256  # of a block; a multiple of the warp that divides every multiprocessor's limit
SHARED = 24 << 10  # bytes of a tile: so many that every multiprocessor has room for as many blocks as it has threads for
WIDE, TALL = 128, 8  # columns of a tile, and rows that a thread sums, at most
AREAS = (4096, 2048, 1024, 512, 256, 128, 64)  # outputs of a block, the first that fits and leaves enough blocks
BUSY = 512  # blocks that keep a large device busy

SOURCE = r"""
#define LINES ((HEIGHT - 1) * STRIDE_Y + (TAPS_Y - 1) * DILATION_Y + 1)  // rows of input that a tile of outputs sees
#define PARTS ((SHIFT + (WIDTH - 1) * STRIDE_X + (TAPS_X - 1) * DILATION_X + LOAD) / LOAD)  // of each of them
#define STRIPS (HEIGHT / ROWS)

struct alignas(LOAD * sizeof(T)) Loaded { T at[LOAD]; };

extern "C" __global__ __launch_bounds__(THREADS) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int tiles_x, int tiles_y, int channels, int height, int width, int multiplier,
    int out_height, int out_width, int top, int left)
{
    const unsigned int place = blockIdx.x / tiles_x;  // tiles along x, along y, then of planes
    const INDEX q = (INDEX)(blockIdx.x % tiles_x) * WIDTH;
    const INDEX p = (INDEX)(place % tiles_y) * HEIGHT;
    const INDEX first = (INDEX)(place / tiles_y) * PLANES;
    const INDEX y = p * STRIDE_Y - top, x = q * STRIDE_X - left - SHIFT;  // x is a multiple of LOAD
#if STAGED
    __shared__ Loaded tile[PLANES * LINES * PARTS];
    #pragma unroll 4
    for (int i = threadIdx.x; i < PLANES * LINES * PARTS; i += THREADS) {
        const INDEX plane = first + i / (LINES * PARTS), row = y + i / PARTS % LINES, column = x + i % PARTS * LOAD;
        // The width is a multiple of LOAD too: a part lies in the image or outside, whole.
        Loaded found = {};
        if (plane < planes && row >= 0 && row < height && column >= 0 && column < width)
            found = *reinterpret_cast<const Loaded*>(input + (plane * height + row) * width + column);
        tile[i] = found;
    }
    __syncthreads();
    const T* pixels = reinterpret_cast<const T*>(tile);
#endif
    // Loops over the taps of small kernels are unrolled: then a pixel is read once for all the rows of a strip.
    constexpr int SMALL = TAPS_Y * TAPS_X <= 64;
    constexpr int TIMES_Y = SMALL ? TAPS_Y : 1, TIMES_X = SMALL ? TAPS_X : 1;
    for (int i = threadIdx.x; i < PLANES * STRIPS * WIDTH; i += THREADS) {
        const int side = i % WIDTH, strip = i / WIDTH % STRIPS * ROWS, local = i / (WIDTH * STRIPS);
        const INDEX plane = first + local;
        if (plane >= planes || q + side >= out_width) continue;
        for (int m = 0; m < multiplier; ++m) {
            const INDEX k = plane % channels * multiplier + m;
            const T* taps = weight + k * (TAPS_Y * TAPS_X);
            T sum[ROWS];
            #pragma unroll
            for (int row = 0; row < ROWS; ++row) sum[row] = bias ? bias[k] : (T)0;
            #pragma unroll TIMES_X
            for (int s = 0; s < TAPS_X; ++s)
                #pragma unroll TIMES_Y
                for (int r = 0; r < TAPS_Y; ++r) {
                    const T factor = taps[r * TAPS_X + s];
                    #pragma unroll
                    for (int row = 0; row < ROWS; ++row) {
                        const INDEX below = (INDEX)(strip + row) * STRIDE_Y + (INDEX)r * DILATION_Y;
                        const INDEX beside = SHIFT + (INDEX)side * STRIDE_X + (INDEX)s * DILATION_X;
#if STAGED
                        const T pixel = pixels[(local * LINES + below) * (PARTS * LOAD) + beside];
#else
                        const bool within = y + below >= 0 && y + below < height && x + beside >= 0 && x + beside < width;
                        const T pixel = within ? input[(plane * height + y + below) * width + x + beside] : (T)0;
#endif
                        sum[row] += factor * pixel;
                    }
                }
            #pragma unroll
            for (int row = 0; row < ROWS; ++row)
                if (p + strip + row < out_height)
                    output[((plane * multiplier + m) * out_height + p + strip + row) * out_width + q + side] = sum[row];
        }
    }
}
"""


@implementation(
    device="cuda",
    family="direct",
    summary="CuPy raw kernel: one channel an output, tiles in shared memory",
    arrays="cupy",
    limits={"C/groups": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, 1, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if output.size:
        image, before = cupy.ascontiguousarray(input), (padding[0][0], padding[1][0])
        shapes = input.shape, weight.shape, output.shape
        kernel, grid, numbers = launch(*shapes, stride, before, dilation, input.dtype.name, at_once(image))
        kernel(grid, (THREADS,), (image, cupy.ascontiguousarray(weight), or_null(bias), output, *numbers))
    return output


@functools.lru_cache(maxsize=1024)
def launch(input, weight, output, stride, before, dilation, dtype, load):
    """The kernel for a problem given by its shapes, its grid, and its arguments after the arrays.

    load: elements of a row of input that are read at once.
    """
    (n, channels, height, width), (k, _, *taps), (_, _, p, q) = input, weight, output
    itemsize = 8 if dtype == "float64" else 4
    shift = -before[1] % load  # from where `load` elements may be read at once to the tile's first pixel
    planes, span = n * channels, [d * (size - 1) + 1 for d, size in zip(dilation, taps, strict=True)]
    # Tiles side by side begin where `load` elements may be read at once.
    side = q if q <= WIDE else -(-even(q, WIDE) * itemsize // WIDEST) * WIDEST // itemsize
    parts, tiles_x = -(-(shift + (side - 1) * stride[1] + span[1]) // load), -(-q // side)
    tiles = []
    for area in AREAS:
        most = even(p, max(1, area // side))
        rows = even(most, TALL)
        tall = -(-most // rows) * rows
        deep = max(1, min(planes, area // (side * tall)))
        tiles_y = -(-p // tall)
        blocks = tiles_x * tiles_y * -(-planes // deep)
        staged = deep * ((tall - 1) * stride[0] + span[0]) * parts * load * itemsize <= SHARED
        tiles.append((staged, blocks, rows, tall, deep, tiles_y))
    fitting = [tile for tile in tiles if tile[0]]
    last = [tiles[0], *fitting][-1]  # the smallest that fits, or the largest where none does
    staged, blocks, rows, tall, deep, tiles_y = next((tile for tile in fitting if tile[1] >= BUSY), last)
    reach = (
        (tiles_y + 1) * tall * stride[0] + span[0] + before[0],
        (tiles_x + 1) * side * stride[1] + span[1] + before[1] + load,
    )
    counted = max(*reach, math.prod(input), math.prod(weight), math.prod(output))
    constants = {"INDEX": "int" if counted < 2**31 else "long long", "THREADS": THREADS, "STAGED": int(staged)}
    constants |= {"TAPS_Y": taps[0], "STRIDE_Y": stride[0], "DILATION_Y": dilation[0], "HEIGHT": tall, "ROWS": rows}
    constants |= {"TAPS_X": taps[1], "STRIDE_X": stride[1], "DILATION_X": dilation[1], "WIDTH": side, "PLANES": deep}
    constants |= {"LOAD": load, "SHIFT": shift}
    numbers = (tiles_x, tiles_y, channels, height, width, k // channels, p, q, *before)
    kernel = raw_kernel(SOURCE, "conv2d", dtype, **constants)
    return kernel, (blocks,), (cupy.int64(planes), *map(cupy.int32, numbers))
