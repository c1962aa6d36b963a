/* What is in which tile and piece of cpu.cython_winograd: what depends on the shape alone. */
#pragma once

#include "_shape.h"

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
static ptrdiff_t tile_columns(const Shape *g, const Grouping *w, ptrdiff_t tiles)
{
    return begin_of(tiles - 1, w->apart_x) * g->stride_x + 5 * w->step_x + first_across(w, w->across - 1) * g->dilation_x + 1;
}
