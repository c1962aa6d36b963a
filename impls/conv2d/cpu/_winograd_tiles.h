/* What is in which tile and piece of cpu.cython_winograd, and where it lies: see _winograd.h, and _vectors.h for REAL and NAME. */

#ifndef CONVBENCH_WINOGRAD_TILES
#define CONVBENCH_WINOGRAD_TILES
#define PAIR (2 * LANES) /* output channels at a time */
#define CHUNK 16         /* tiles of a row that are transformed at a time */
#define FEW 4            /* groups of tiles whose products are all held ... */
#define DEPTH 8          /* ... while weights are transformed for so many blocks of input channels at a time, of one piece, ... */
#define DEEPER 16        /* ... of all pieces where there are several, lest the sums of one piece be short */

/* How tiles go together. A group, of `size` tiles at most, is multiplied at once; it holds whole rows of tiles, `rows` of them, or
   one of `parts` pieces of a row. A tile's pixels lie `step` apart: the stride or the dilation, of which the larger is a multiple of the other. Its
   outputs, whose pixels those are, lie `apart_y` rows and `apart_x` columns apart; between them lie those of other tiles, so that as many tiles
   side by side have whole neighbourhoods of outputs, as each piece of a row has. */
typedef struct {
    ptrdiff_t tiles_x, tiles_y, size, rows, parts, step_y, step_x, apart_y, apart_x;
    /* Kernels are cut into pieces of 3x3 taps at most, `across` of them side by side: each sees the image from another pixel on, and is summed
       like more input channels. A piece's taps, which see a tile's pixels, lie `between` apart. blocks: of LANES channels, of all pieces; deep:
       of one; depth: of one that are summed before the next piece's. reads: how often a row of tiles is read, as blocks of one piece and rows
       of pieces. tall, broad: bits of the pieces that have three taps along the axis: of others the last of six products is zero. whole: the
       kernel is one piece of 3x3. */
    ptrdiff_t between_y, between_x, blocks, deep, depth, reads, pieces, across, tall, broad, whole;
} Grouping;

/* Of `count` things along an axis, groups of `size` that lie `apart` each, and the first thing of the group-th. */
static ptrdiff_t groups_along(ptrdiff_t count, ptrdiff_t size, ptrdiff_t apart)
{
    const ptrdiff_t left = count % (size * apart);
    return count / (size * apart) * apart + (left < apart ? left : apart);
}
static ptrdiff_t first_of(ptrdiff_t group, ptrdiff_t size, ptrdiff_t apart) { return group / apart * size * apart + group % apart; }

/* How many of a group's `size` things are there, of which the first has `left` things from itself on. */
static ptrdiff_t there_of(ptrdiff_t left, ptrdiff_t size, ptrdiff_t apart)
{
    return left > (size - 1) * apart ? size : (left + apart - 1) / apart;
}

/* The first output of the tile-th tile along an axis. */
static ptrdiff_t begin_of(ptrdiff_t tile, ptrdiff_t apart) { return first_of(tile, 4, apart); }

/* The first tap of a piece along each axis, and how many there are. */
static ptrdiff_t first_down(const Grouping *w, ptrdiff_t piece) { return first_of(piece / w->across, 3, w->between_y); }
static ptrdiff_t first_across(const Grouping *w, ptrdiff_t piece) { return first_of(piece % w->across, 3, w->between_x); }
static ptrdiff_t taps_down(const Shape *g, const Grouping *w, ptrdiff_t piece)
{
    return there_of(g->taps_y - first_down(w, piece), 3, w->between_y);
}
static ptrdiff_t taps_across(const Shape *g, const Grouping *w, ptrdiff_t piece)
{
    return there_of(g->taps_x - first_across(w, piece), 3, w->between_x);
}

/* Where a block of channels of a piece lies among all blocks. */
static ptrdiff_t place_of(const Grouping *w, ptrdiff_t piece, ptrdiff_t block)
{
    const ptrdiff_t first = block / w->depth * w->depth, depth = w->deep - first < w->depth ? w->deep - first : w->depth;
    return first * w->pieces + piece * depth + block - first;
}

/* The first input row that the row-th row of an image's tiles sees. */
static ptrdiff_t row_of(const Shape *g, const Grouping *w, ptrdiff_t row) { return begin_of(row, w->apart_y) * g->stride_y - g->top; }

/* Input columns that `tiles` tiles side by side see, by all pieces, the first of which begins a neighbourhood. */
static ptrdiff_t columns_seen(const Shape *g, const Grouping *w, ptrdiff_t tiles)
{
    return begin_of(tiles - 1, w->apart_x) * g->stride_x + 5 * w->step_x + first_across(w, w->across - 1) * g->dilation_x + 1;
}
#endif

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
    w.depth = w.pieces == 1 ? DEPTH : w.pieces > DEEPER ? 1 : DEEPER / w.pieces;
    w.reads = w.blocks / w.across;
    for (ptrdiff_t piece = 0; piece < w.pieces; piece++) {
        w.tall |= (ptrdiff_t)(taps_down(g, &w, piece) == 3) << piece;
        w.broad |= (ptrdiff_t)(taps_across(g, &w, piece) == 3) << piece;
    }
    w.whole = w.pieces == 1 && w.tall && w.broad;
    w.tiles_x = groups_along(g->out_width, 4, apart_x);
    w.tiles_y = groups_along(g->out_height, 4, w.apart_y);
    if (w.tiles_x > TILE) {
        const ptrdiff_t most = TILE / apart_x, neighbourhoods = (w.tiles_x + apart_x - 1) / apart_x;
        w.parts = (neighbourhoods + most - 1) / most;
        w.size = (neighbourhoods + w.parts - 1) / w.parts * apart_x;
        w.parts = (w.tiles_x + w.size - 1) / w.size;
    } else {
        const ptrdiff_t most = TILE / w.tiles_x, count = images * w.tiles_y, groups = (count + most - 1) / most;
        w.rows = (count + groups - 1) / groups;
        w.size = w.rows * w.tiles_x;
    }
    return w;
}

/* Elements of a group of transformed tiles: [36][blocks, as by place_of][size][LANES]. A vector more for each of the 36, since stores that lie a
   power of two apart would all fall into one set of the cache. */
#define AREA(w) ((w)->blocks * (w)->size * LANES + LANES)
static ptrdiff_t NAME(group_area)(const Grouping *w) { return 36 * AREA(w); }

/* Elements of transformed weights of PAIR output channels: [36][blocks * LANES][PAIR], and a vector more for the same reason. */
#define STEP(blocks) ((blocks) * LANES * PAIR + LANES)
static ptrdiff_t NAME(factors_area)(const Grouping *w) { return 36 * STEP(w->blocks); }

/* Elements of work a thread: transformed weights, then products and outputs, or lines of the image. */
#define LINE(g, w) ((columns_seen(g, w, CHUNK / (w)->apart_x * (w)->apart_x) + LANES) * LANES) /* of the image: what a chunk of tiles sees */
#define WIDE(w) ((4 * ((w)->size + (w)->apart_x) + LANES) * LANES) /* a row of a group's outputs */
static ptrdiff_t NAME(winograd_work)(const Shape *g, const Grouping *w)
{
    const ptrdiff_t out = FEW * 36 * w->size * PAIR + 4 * WIDE(w), in = 6 * LINE(g, w);
    return NAME(factors_area)(w) + (out > in ? out : in);
}
