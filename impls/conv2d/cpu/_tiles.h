/* Tiles of sums in registers, along rows of outputs: what describes them, and the loops that all their kernels have. See cpu.cython_direct. */
#pragma once

#include "tuning.h"

/* `bands` times `tiles` tiles, each some output rows of some vectors side by side, of which no more than `columns` columns are stored. The
   sums run over `channels` planes of the input, `plane` elements apart; in them the rows of the kernel lie `line` elements apart, its columns
   as `offsets` says, and the input of the next band `step` elements on. streamed: the output is aligned, and non-temporal stores write it.
   ahead: how far from what a tile sees the pixels are that it prefetches, or 0. */
typedef struct {
    ptrdiff_t line, plane, step, channels, taps_y, taps_x, tiles, columns, bands, width;
    const ptrdiff_t *offsets;
    int streamed;
    ptrdiff_t ahead;
} Tiles;

/* Where the pixels of a tile of several outputs are: at places of the input; there, from where they are copied on the way, for other outputs
   of the tile; or copied, all that each tap sees behind what the one before does. */
enum { IN_PLACE, COPYING, COPIED };

/* `count` tiles of `tile` outputs, 1 << power vectors, from pixel `at` on, and the pixel after them. */
typedef struct {
    ptrdiff_t at, tile, count, after;
    int power;
} TileRun;

/* The next tiles of pixels at to last - 1, `last` a vector at least: as wide as there can be, up to 1 << widest vectors, and `most` of them. */
static inline TileRun next_tiles(ptrdiff_t at, ptrdiff_t last, ptrdiff_t most, ptrdiff_t lanes, int widest)
{
    const ptrdiff_t left = last - at;
    const int power = left > lanes && last >= lanes << widest ? widest : 0;
    const ptrdiff_t tile = lanes << power, whole = left / tile;
    if (whole == 0) /* the last tile begins with outputs of the one before */
        return (TileRun){last - tile, tile, 1, last, power};
    const ptrdiff_t count = whole < most ? whole : most;
    return (TileRun){at, tile, count, at + count * tile, power};
}

/* Loops over the vectors, rows and output channels of a tile, and what they do with its vectors x and sums. */
#define VECTORS(v) _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
#define EACH_ROW(j) _Pragma("GCC unroll 4") for (int j = 0; j < rows; j++)
#define EACH_OUTPUT(k) _Pragma("GCC unroll 28") for (int k = 0; k < count; k++)
#define ADD(factor, j)                                                                                                 \
    {                                                                                                                  \
        const V w = factor;                                                                                            \
        VECTORS(v) MULTIPLY_ADD(sums[j][v], w, x[v]);                                                                  \
    }
#define LOAD(from)                                                                                                     \
    VECTORS(v)                                                                                                         \
    {                                                                                                                  \
        x[v] = NAME(load)((from) + v * LANES);                                                                         \
        KEEP(x[v]);                                                                                                    \
    }
/* What each vector v of output channel k does at `to`, by one pointer: GCC would have one for each channel, and no registers for so many. */
#define TO_EACH_OUTPUT(begin, far, does)                                                                               \
    {                                                                                                                  \
        REAL *to = begin;                                                                                              \
        EACH_OUTPUT(k)                                                                                                 \
        {                                                                                                              \
            KEEP_POINTER(to);                                                                                          \
            VECTORS(v) does;                                                                                           \
            to += far;                                                                                                 \
        }                                                                                                              \
    }
