/* How tiles of cpu.cython_winograd are grouped, and where they lie in memory: see _winograd_plan.h. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_WINOGRAD_TILES
#define CONVBENCH_WINOGRAD_TILES

#include "_vectors.h"
#include "_winograd_plan.h"

/* Groups as even and as full as they can be, for all rows of tiles of `images` images. */
static Grouping NAME(grouping)(const Shape *g, ptrdiff_t images)
{
    const ptrdiff_t step_y = g->stride_y > g->dilation_y ? g->stride_y : g->dilation_y;
    const ptrdiff_t step_x = g->stride_x > g->dilation_x ? g->stride_x : g->dilation_x, apart_x = step_x / g->stride_x;
    Grouping w = {.rows = 1, .parts = 1, .step_y = step_y, .step_x = step_x, .apart_y = step_y / g->stride_y, .apart_x = apart_x};
    w.between_y = step_y / g->dilation_y;
    w.between_x = step_x / g->dilation_x;
    w.deep = (g->channels + LANES - 1) / LANES;
    w.across = groups_along(g->taps_x, 3, w.between_x);
    w.pieces = w.across * groups_along(g->taps_y, 3, w.between_y);
    w.blocks = w.deep * w.pieces;
    w.depth = w.pieces == 1 ? WEIGHT_BLOCKS_PER_TURN : w.pieces > PIECE_BLOCKS_PER_TURN ? 1 : PIECE_BLOCKS_PER_TURN / w.pieces;
    w.reads = w.blocks / w.across;
    for (ptrdiff_t piece = 0; piece < w.pieces; piece++) {
        w.tall |= (ptrdiff_t)(taps_down(g, &w, piece) == 3) << piece;
        w.broad |= (ptrdiff_t)(taps_across(g, &w, piece) == 3) << piece;
    }
    w.whole = w.pieces == 1 && w.tall && w.broad;
    w.tiles_x = groups_along(g->out_width, 4, apart_x);
    w.tiles_y = groups_along(g->out_height, 4, w.apart_y);
    if (w.tiles_x > PRODUCT_ROWS) {
        const ptrdiff_t most = PRODUCT_ROWS / apart_x, neighbourhoods = (w.tiles_x + apart_x - 1) / apart_x;
        w.parts = (neighbourhoods + most - 1) / most;
        w.size = (neighbourhoods + w.parts - 1) / w.parts * apart_x;
        w.parts = (w.tiles_x + w.size - 1) / w.size;
    } else {
        const ptrdiff_t most = PRODUCT_ROWS / w.tiles_x, count = images * w.tiles_y, groups = (count + most - 1) / most;
        w.rows = (count + groups - 1) / groups;
        w.size = w.rows * w.tiles_x;
    }
    return w;
}

/* Elements of a group of transformed tiles: [36][blocks, as by place_of][size][LANES]. A vector more for each of the 36, since stores that lie a
   power of two apart would all fall into one set of the cache. */
#define TILES_AREA(w) ((w)->blocks * (w)->size * LANES + LANES)
static ptrdiff_t NAME(group_area)(const Grouping *w) { return 36 * TILES_AREA(w); }

/* Elements of transformed weights of PAIR output channels: [36][blocks * LANES][PAIR], and a vector more for the same reason. */
#define FACTORS_STEP(blocks) ((blocks) * LANES * PAIR + LANES)
static ptrdiff_t NAME(factors_area)(const Grouping *w) { return 36 * FACTORS_STEP(w->blocks); }

/* Elements of a line of the image that a chunk of tiles sees, and of a row of a group's outputs. */
#define LINE_AREA(g, w) ((tile_columns(g, w, WINOGRAD_CHUNK_TILES / (w)->apart_x * (w)->apart_x) + LANES) * LANES)
#define OUTPUT_ROW_AREA(w) ((4 * ((w)->size + (w)->apart_x) + LANES) * LANES)

/* Elements of work a thread: transformed weights, then products and outputs, or lines of the image. */
static ptrdiff_t NAME(winograd_work)(const Shape *g, const Grouping *w)
{
    const ptrdiff_t out = MAX_HELD_GROUPS * 36 * w->size * PAIR + 4 * OUTPUT_ROW_AREA(w), in = 6 * LINE_AREA(g, w);
    return NAME(factors_area)(w) + (out > in ? out : in);
}
#endif
