"""Winograd's F(4x4, 3x3): tiles of input and weights transformed by raw kernels, products of matrices by cuBLAS, and back.

Lavin and Gray, arXiv 1509.09308, with the points 0, 1, -1, 2, -2 and infinity: 36 products for a tile of 16 outputs instead
of 144. With a stride of 2 every other pixel meets two taps, which take F(4, 2) with the points 0, 1, -1, 2 and infinity, and
those between meet one: 81 products. A quarter, or 9/16, of the 2 N K P Q (C/g) 9 FLOPs, and the transforms: about 14 for
every pixel of input, 8 for every output; extra memory: the transformed weights, four or nine times as large, and the
transformed tiles and products of as many tiles as make up a part, part after part. cuBLAS multiplies in full precision; a
tile with an output that is not finite is summed by the definition in its place, so that numbers that a transform cannot
carry, or its overflow, reach no output that does not see them.
"""

import functools
import math

import cupy

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import at_once, even, or_null, raw_kernel
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_winograd")

THREADS = 128  # a block; a multiple of the warp that divides every multiprocessor's limit
POINTS = {1: 6, 2: 9}  # by stride, the numbers that a row of a tile is transformed from and to
WORK = 1 << 28  # bytes of transformed tiles and products in a part: the more, the faster cuBLAS is
SECTOR = 32  # bytes; rows of tiles begin at whole sectors of memory

SOURCE = r"""
#define PARTS ((SHIFT + POINTS_X + LOAD - 1) / LOAD)  // of a row of a tile of input
#define POINTS (POINTS_Y * POINTS_X)
#define STRIDE(points) (points == 9 ? 2 : 1)

struct alignas(LOAD * sizeof(T)) Loaded { T at[LOAD]; };
struct alignas(STORE * sizeof(T)) Stored { T at[STORE]; };

// Of a row or column, its numbers `step` apart: six or nine pixels as they go into the products, ...
template <int COUNT> __device__ __forceinline__ void forward(T* d, const int step)
{
    if (COUNT == 6) {
        const T d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step], d5 = d[5 * step];
        const T even = d4 - 4 * d2, odd = d3 - 4 * d1, near = d4 - d2, far = 2 * (d3 - d1);
        d[0] = 4 * d0 - 5 * d2 + d4;
        d[step] = even + odd;
        d[2 * step] = even - odd;
        d[3 * step] = near + far;
        d[4 * step] = near - far;
        d[5 * step] = 4 * d1 - 5 * d3 + d5;
    } else {
        const T e0 = d[0], e1 = d[2 * step], e2 = d[4 * step], e3 = d[6 * step], e4 = d[8 * step];
        const T o0 = d[step], o1 = d[3 * step], o2 = d[5 * step], o3 = d[7 * step];
        d[0] = 2 * (e0 - e2) + e3 - e1;
        d[step] = e3 - e2 - 2 * e1;
        d[2 * step] = e3 - 3 * e2 + 2 * e1;
        d[3 * step] = e3 - e1;
        d[4 * step] = 2 * (e1 - e3) + e4 - e2;
        d[5 * step] = o0;
        d[6 * step] = o1;
        d[7 * step] = o2;
        d[8 * step] = o3;
    }
}

// ... three taps as they do, ...
template <int COUNT> __device__ __forceinline__ void weights(const T g0, const T g1, const T g2, T* u)
{
    if (COUNT == 6) {
        const T ends = (g0 + g2) * (T)(1.0 / 6), middle = g1 * (T)(1.0 / 6);
        const T wide = g0 * (T)(1.0 / 24) + g2 * (T)(1.0 / 6), half = g1 * (T)(1.0 / 12);
        u[0] = g0 * (T)(1.0 / 4);
        u[1] = -ends - middle;
        u[2] = middle - ends;
        u[3] = wide + half;
        u[4] = wide - half;
        u[5] = g2;
    } else {
        u[0] = g0 * (T)(1.0 / 2);
        u[1] = (g0 + g2) * (T)(-1.0 / 2);
        u[2] = (g2 - g0) * (T)(1.0 / 6);
        u[3] = g0 * (T)(1.0 / 6) + g2 * (T)(1.0 / 3);
        u[4] = g2;
        u[5] = u[6] = u[7] = u[8] = g1;
    }
}

// ... and six or nine sums of products as four outputs.
template <int COUNT> __device__ __forceinline__ void backward(T* m, const int step)
{
    const T m0 = m[0], m1 = m[step], m2 = m[2 * step], m3 = m[3 * step], m4 = m[4 * step];
    const T sum = m1 + m2, difference = m1 - m2;
    if (COUNT == 6) {
        const T m5 = m[5 * step], far_sum = m3 + m4, far_difference = m3 - m4;
        m[0] = m0 + sum + far_sum;
        m[step] = difference + 2 * far_difference;
        m[2 * step] = sum + 4 * far_sum;
        m[3 * step] = difference + 8 * far_difference + m5;
    } else {
        m[0] = m0 + sum + m3 + m[5 * step];
        m[step] = difference + 2 * m3 + m[6 * step];
        m[2 * step] = sum + 4 * m3 + m[7 * step];
        m[3 * step] = difference + 8 * m3 + m4 + m[8 * step];
    }
}

// Kernels (size, 3, 3) to factors (POINTS, size): a thread for each.
extern "C" __global__ __launch_bounds__(THREADS) void transform_weights(
    const T* __restrict__ weight, T* __restrict__ factors, long long size)
{
    const INDEX i = (INDEX)blockIdx.x * THREADS + threadIdx.x;
    if (i >= size) return;
    T rows[3 * POINTS_Y], u[9];
    #pragma unroll
    for (int s = 0; s < 3; ++s) {
        weights<POINTS_Y>(weight[i * 9 + s], weight[i * 9 + 3 + s], weight[i * 9 + 6 + s], u);
        #pragma unroll
        for (int point = 0; point < POINTS_Y; ++point) rows[3 * point + s] = u[point];
    }
    #pragma unroll
    for (int row = 0; row < POINTS_Y; ++row) {
        weights<POINTS_X>(rows[3 * row], rows[3 * row + 1], rows[3 * row + 2], u);
        #pragma unroll
        for (int point = 0; point < POINTS_X; ++point) factors[(POINTS_X * row + point) * (INDEX)size + i] = u[point];
    }
}

// Tiles first to first + wide - 1 of every channel to (POINTS, channels, wide), zeros after `count`: a thread for each.
extern "C" __global__ __launch_bounds__(THREADS) void transform_tiles(
    const T* __restrict__ input, T* __restrict__ tiles, long long first, int count, int wide,
    int channels, int height, int width, int tiles_y, int tiles_x, int top, int left)
{
    const INDEX i = (INDEX)blockIdx.x * THREADS + threadIdx.x, c = i / wide, tile = i % wide, place = (INDEX)first + tile;
    if (c >= channels) return;
    const INDEX y = place / tiles_x % tiles_y * (4 * STRIDE(POINTS_Y)) - top;
    const INDEX x = place % tiles_x * (4 * STRIDE(POINTS_X)) - left - SHIFT;  // a multiple of LOAD
    const T* image = input + (place / tiles_x / tiles_y * channels + c) * height * width;
    T d[POINTS];
    #pragma unroll
    for (int row = 0; row < POINTS_Y; ++row) {
        T line[PARTS * LOAD];
        #pragma unroll
        for (int part = 0; part < PARTS; ++part) {
            // The width is a multiple of LOAD too: a part lies in the image or outside, whole.
            const INDEX column = x + part * LOAD;
            Loaded found = {};
            if (tile < count && y + row >= 0 && y + row < height && column >= 0 && column < width)
                found = *reinterpret_cast<const Loaded*>(image + (y + row) * width + column);
            #pragma unroll
            for (int j = 0; j < LOAD; ++j) line[part * LOAD + j] = found.at[j];
        }
        #pragma unroll
        for (int column = 0; column < POINTS_X; ++column) d[POINTS_X * row + column] = line[SHIFT + column];
    }
    #pragma unroll
    for (int column = 0; column < POINTS_X; ++column) forward<POINTS_Y>(d + column, POINTS_X);
    #pragma unroll
    for (int row = 0; row < POINTS_Y; ++row) forward<POINTS_X>(d + POINTS_X * row, 1);
    #pragma unroll
    for (int point = 0; point < POINTS; ++point) tiles[((INDEX)point * channels + c) * wide + tile] = d[point];
}

// Products (POINTS, outputs, wide) to the outputs of tiles first to first + count - 1: a thread for each.
extern "C" __global__ __launch_bounds__(THREADS) void transform_products(
    const T* __restrict__ products, const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias,
    T* __restrict__ output, long long first, int count, int wide, int channels, int height, int width, int outputs,
    int out_height, int out_width, int group_channels, int group_outputs, int tiles_y, int tiles_x, int top, int left)
{
    const INDEX i = (INDEX)blockIdx.x * THREADS + threadIdx.x, k = i / wide, tile = i % wide, place = (INDEX)first + tile;
    if (k >= outputs || tile >= count) return;
    const INDEX p = place / tiles_x % tiles_y * 4, q = place % tiles_x * 4, n = place / tiles_x / tiles_y;
    const T start = bias ? bias[k] : (T)0;
    T* target = output + ((n * outputs + k) * out_height + p) * out_width + q;
    T m[POINTS];
    #pragma unroll
    for (int point = 0; point < POINTS; ++point) m[point] = products[((INDEX)point * outputs + k) * wide + tile];
    #pragma unroll
    for (int column = 0; column < POINTS_X; ++column) backward<POINTS_Y>(m + column, POINTS_X);
    T doubt = 0;
    #pragma unroll
    for (int row = 0; row < 4; ++row) {
        backward<POINTS_X>(m + POINTS_X * row, 1);
        #pragma unroll
        for (int column = 0; column < 4; ++column) doubt += 0 * m[POINTS_X * row + column];  // zero if it is finite
    }
    if (doubt == 0) {
        #pragma unroll
        for (int row = 0; row < 4; ++row)
            #pragma unroll
            for (int column = 0; column < 4; column += STORE) {
                if (p + row >= out_height || q + column >= out_width) continue;
                Stored made;
                #pragma unroll
                for (int j = 0; j < STORE; ++j) made.at[j] = m[POINTS_X * row + column + j] + start;
                *reinterpret_cast<Stored*>(target + (INDEX)row * out_width + column) = made;
            }
        return;
    }
    const T* image = input + (n * channels + k / group_outputs * group_channels) * height * width;
    const T* taps = weight + k * group_channels * 9;
    for (int row = 0; row < 4 && p + row < out_height; ++row)
        for (int column = 0; column < 4 && q + column < out_width; ++column) {
            T sum = start;
            for (INDEX c = 0; c < group_channels; ++c)
                for (int tap = 0; tap < 9; ++tap) {
                    const INDEX y = (p + row) * STRIDE(POINTS_Y) + tap / 3 - top;
                    const INDEX x = (q + column) * STRIDE(POINTS_X) + tap % 3 - left;
                    if (y >= 0 && y < height && x >= 0 && x < width)
                        sum += taps[c * 9 + tap] * image[(c * height + y) * width + x];
                }
            target[(INDEX)row * out_width + column] = sum;
        }
}
"""


@implementation(
    device="cuda",
    family="winograd",
    summary="CuPy raw kernels and cuBLAS: Winograd F(4x4, 3x3)",
    arrays="cupy",
    limits={"kernel": (3, 3), "stride": {1, 2}, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if not output.size:
        return output
    image, taps, start = cupy.ascontiguousarray(input), cupy.ascontiguousarray(weight), or_null(bias)
    (k, group_channels), before = weight.shape[:2], (padding[0][0], padding[1][0])
    shapes, widths = (input.shape, weight.shape, output.shape), (at_once(image), at_once(output))
    found = launch(*shapes, stride, before, groups, input.dtype.name, *widths)
    to_factors, to_tiles, to_outputs, points, total, wide, tiled, counted = found
    factors = cupy.empty((points, groups, k // groups, group_channels), input.dtype)
    tiles = cupy.empty((points, groups, group_channels, wide), input.dtype)
    products = cupy.empty((points, groups, k // groups, wide), input.dtype)
    kernels = factors[0].size
    to_factors(_blocks(kernels), (THREADS,), (taps, factors, cupy.int64(kernels)))
    for first in range(0, total, wide):
        part = cupy.int64(first), cupy.int32(min(wide, total - first)), cupy.int32(wide)
        to_tiles(_blocks(tiles[0].size), (THREADS,), (image, tiles, *part, *tiled))
        cupy.matmul(factors, tiles, out=products)
        to_outputs(_blocks(products[0].size), (THREADS,), (products, image, taps, start, output, *part, *counted))
    return output


@functools.lru_cache(maxsize=1024)
def launch(input, weight, output, stride, before, groups, dtype, load, store):
    """For a problem given by its shapes: three kernels, a tile's points, all tiles, those of a part, the kernels' numbers.

    load, store: elements that may be read and written at once where input and output begin.
    """
    (_, channels, height, width), (k, group_channels, _, _), (n, _, p, q) = input, weight, output
    tiles_y, tiles_x, load, store = -(-p // 4), -(-q // 4), math.gcd(load, width), math.gcd(store, q)
    points, itemsize = POINTS[stride[0]] * POINTS[stride[1]], 8 if dtype == "float64" else 4
    total, sector = n * tiles_y * tiles_x, SECTOR // itemsize
    most = WORK // ((channels + k) * points * itemsize)
    wide = -(-even(total, max(sector, most)) // sector) * sector
    reach = (4 * tiles * step + 9 + padding for tiles, step, padding in zip((tiles_y, tiles_x), stride, before, strict=True))
    sizes = points * k * group_channels, points * max(channels, k) * wide, total + wide, *map(math.prod, (input, output))
    constants = {"INDEX": "int" if max(*sizes, *reach) + THREADS < 2**31 else "long long", "THREADS": THREADS}
    constants |= {"POINTS_Y": POINTS[stride[0]], "POINTS_X": POINTS[stride[1]]}
    constants |= {"LOAD": load, "SHIFT": -before[1] % load, "STORE": store}
    names = "transform_weights", "transform_tiles", "transform_products"
    kernels = [raw_kernel(SOURCE, name, dtype, **constants) for name in names]
    image, ends = (channels, height, width), (tiles_y, tiles_x, *before)
    numbers = (*image, *ends), (*image, k, p, q, group_channels, k // groups, *ends)
    return *kernels, points, total, wide, *(tuple(map(cupy.int32, each)) for each in numbers)


def _blocks(threads):
    return (-(-threads // THREADS),)
