/* Tiles of several output channels whose pixels are copied tap by tap (im2col of a tile): all that one tile of outputs sees, side by side,
   which all outputs then read. In place, a channel's pixels are a page or more away from the next one's, and rows that are no multiple of
   a vector leave lanes empty. See cpu.cython_direct, and _multi_output.h for the sums. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_IM2COL_TILES
#define CONVBENCH_IM2COL_TILES

#include "_direct_plan.h"
#include "_multi_output.h"

/* All outputs of tiles of `taps` taps; places, input, copies, row, bias: as all_outputs has them; output: of the tiles' first pixel.
   streams: by non-temporal stores; uncached: the input is more than MAX_CACHED_BATCH_BYTES. */
static void NAME(sum_tiles)(const Shape *g, TileRun tiles, ptrdiff_t taps, ptrdiff_t *places, const REAL *input, REAL *copies,
                           const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output, int streams, int uncached)
{
    static const ptrdiff_t nowhere = 0;
    /* Without other outputs the copies are not read again, and they need no more room than one tile's, in the first cache. */
    const ptrdiff_t plane = g->height * g->width, step = input != NULL && g->outputs <= MAX_TILE_OUTPUTS ? 0 : taps * tiles.tile;
    const int slow = has_slow_planes(g) && !has_paged_planes(g, SIZE);
    const ptrdiff_t ahead = !uncached ? 0 : slow ? 2 * tiles.tile : prefetch_distance(g, tiles.tile, LANES);
    const Tiles given = {0, plane, step, taps, 1, 1, 1, tiles.tile, tiles.count, tiles.tile, &nowhere, streams, ahead};
    NAME(all_outputs)(g, tiles.power, &given, places, input, copies, weight, row, bias, output);
}

/* Elements of one tile, and how many tiles are copied at once. */
static ptrdiff_t NAME(im2col_size)(const Shape *g) { return im2col_channels(g) * g->taps_y * g->taps_x * (LANES << TILE_LOG2_VECTORS); }

static ptrdiff_t NAME(im2col_tiles)(const Shape *g)
{
    const ptrdiff_t tiles = IM2COL_TILES_BYTES / (NAME(im2col_size)(g) * (ptrdiff_t)sizeof(REAL));
    return tiles < 1 ? 1 : tiles;
}

/* Elements of work that im2col_rows needs; the copy may end a vector behind the last tile. */
static ptrdiff_t NAME(im2col_work)(const Shape *g) { return NAME(im2col_tiles)(g) * NAME(im2col_size)(g) + LANES; }

/* The segments of rows, a vector at most, that `tile` outputs from pixel `pixel` on are; how many. at: where each begins in the tile, and
   where the last ends; from: where what it sees begins, in rows of `line` elements in which neighbours see what is `step` apart. */
static int NAME(row_segments)(const Shape *g, ptrdiff_t pixel, ptrdiff_t tile, ptrdiff_t line, ptrdiff_t step, ptrdiff_t *at, ptrdiff_t *from)
{
    int segments = 0;
    for (ptrdiff_t p = 0; p < tile; segments++) {
        const ptrdiff_t x = (pixel + p) % g->out_width, left = g->out_width - x;
        at[segments] = p;
        from[segments] = (pixel + p) / g->out_width * g->stride_y * line + x * step;
        p += left < LANES ? left : LANES;
    }
    at[segments] = tile;
    return segments;
}

/* A tile of outputs from pixel `pixel` on: channels first to last - 1 of what they see. copy: of `seen` rows of `line` elements of each
   channel, and a vector behind; to: a vector of it may be written behind the tile. */
static void NAME(copy_tile_taps)(const Shape *g, const REAL *copy, ptrdiff_t seen, ptrdiff_t line, const ptrdiff_t *offsets, ptrdiff_t pixel,
                           ptrdiff_t tile, ptrdiff_t first, ptrdiff_t last, REAL *to)
{
    /* Each segment behind the one before: what a vector holds beyond it the next store overwrites. */
    ptrdiff_t at[(LANES << TILE_LOG2_VECTORS) + 1], from[LANES << TILE_LOG2_VECTORS];
    const int segments = NAME(row_segments)(g, pixel, tile, line, 1, at, from);
    for (ptrdiff_t c = first; c < last; c++)
        for (ptrdiff_t r = 0; r < g->taps_y; r++)
            for (ptrdiff_t s = 0; s < g->taps_x; s++, to += tile) {
                const REAL *begin = copy + (c * seen + r * g->dilation_y) * line + offsets[s];
                if (segments == 2) { /* most have so few, and need no loop */
                    NAME(store)(to + at[0], NAME(load)(begin + from[0]));
                    NAME(store)(to + at[1], NAME(load)(begin + from[1]));
                } else
                    for (int i = 0; i < segments; i++)
                        NAME(store)(to + at[i], NAME(load)(begin + from[i]));
            }
}

/* Output rows first to last - 1, of a vector's pixels at least, from their copy: the tiles go on from row to row. The other arguments as
   band() has them. */
static void NAME(im2col_rows)(const Shape *g, const REAL *copy, ptrdiff_t seen, ptrdiff_t line, const ptrdiff_t *offsets, const REAL *weight,
                           const REAL *bias, REAL *output, ptrdiff_t first, ptrdiff_t last, int streamed, REAL *work)
{
    const ptrdiff_t window = g->taps_y * g->taps_x, most = NAME(im2col_tiles)(g), some = im2col_channels(g);
    const ptrdiff_t begin = first * g->out_width, pixels = (last - first) * g->out_width;
    for (ptrdiff_t at = 0; at < pixels;) {
        const TileRun tiles = next_tiles(at, pixels, most, LANES, TILE_LOG2_VECTORS);
        const int streams = streamed && some == g->channels && is_aligned(g, begin + tiles.at, LANES);
        for (ptrdiff_t c = 0; c < g->channels; c += some) {
            const ptrdiff_t end = c + some < g->channels ? c + some : g->channels, taps = (end - c) * window;
            for (ptrdiff_t t = 0; t < tiles.count; t++)
                NAME(copy_tile_taps)(g, copy, seen, line, offsets, tiles.at + t * tiles.tile, tiles.tile, c, end, work + t * taps * tiles.tile);
            NAME(sum_tiles)(g, tiles, taps, NULL, NULL, work, weight + c * window, g->channels * window,
                            c ? NULL : bias, output + begin + tiles.at, streams, 0);
        }
        at = tiles.after;
    }
}
#endif
