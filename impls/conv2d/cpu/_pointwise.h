/* 1x1 layers, whose images are one long row of tiles: the first outputs copy the pixels while they are summed, and strided ones are copied
   before. See cpu.cython_direct, and _pointwise_packed.h for layers whose weights are worth packing. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_POINTWISE
#define CONVBENCH_POINTWISE

#include "_direct_plan.h"
#include "_im2col_tiles.h"

/* Copies of the pixels that tiles of a 1x1 layer see of `channels` channels, each tile's of a channel side by side. */
static void NAME(copy_tile_pixels)(const Shape *g, const REAL *input, ptrdiff_t channels, TileRun tiles, REAL *copies)
{
    const ptrdiff_t plane = g->height * g->width, tile = tiles.tile, stride = g->stride_x;
    for (ptrdiff_t t = 0; t < tiles.count; t++) {
        ptrdiff_t at[(LANES << TILE_LOG2_VECTORS) + 1], from[LANES << TILE_LOG2_VECTORS];
        const int segments = NAME(row_segments)(g, tiles.at + t * tile, tile, g->width, stride, at, from);
        for (ptrdiff_t c = 0; c < channels; c++, copies += tile)
            for (int i = 0; i < segments; i++) {
                const REAL *begin = input + c * plane + from[i];
                const ptrdiff_t count = at[i + 1] - at[i], seen = (count - 1) * stride + 1;
                if (stride == 2) {
                    const V first = NAME(load_some)(begin, 0, seen), second = NAME(load_some)(begin + LANES, 0, seen - LANES);
                    NAME(store_first)(copies + at[i], EVENS(first, second), count);
                } else
                    for (ptrdiff_t p = 0; p < count; p++)
                        copies[at[i] + p] = begin[p * stride];
            }
    }
}

/* Pixels first to last - 1 of an image that is one long row: is_pointwise. `last` is a vector at least; places: room for a number for each
   of pointwise_channels(g); copies: for their pixels of all these, or a tile's where these are more. The other arguments as band() has them. */
static void NAME(pointwise)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int streamed, int uncached, ptrdiff_t *places, REAL *copies)
{
    const int whole = g->stride_y == 1 && g->stride_x == 1 && g->out_width == g->width; /* pixels are side by side in place */
    const ptrdiff_t some = pointwise_channels(g), plane = g->height * g->width;
    for (ptrdiff_t at = first; at < last;) {
        const TileRun tiles = next_tiles(at, last, last - first, LANES, TILE_LOG2_VECTORS);
        const int streams = streamed && some == g->channels && is_aligned(g, tiles.at, LANES);
        for (ptrdiff_t c = 0; c < g->channels; c += some) {
            const ptrdiff_t count = c + some < g->channels ? some : g->channels - c;
            if (!whole)
                NAME(copy_tile_pixels)(g, input + c * plane, count, tiles, copies);
            NAME(sum_tiles)(g, tiles, count, places, whole ? input + c * plane + tiles.at : NULL, copies, weight + c, g->channels,
                           c ? NULL : bias, output + tiles.at, streams, uncached);
        }
        at = tiles.after;
    }
}
#endif
