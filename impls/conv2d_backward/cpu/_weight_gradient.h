/* The gradient of the weight for horizontal stride 1: for each pair of channels the taps' sums in vector registers, rows of the output's
   gradient against rows of the input. A vector of the gradient, once loaded, serves all taps of a tile. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_WEIGHT_GRADIENT
#define CONVBENCH_WEIGHT_GRADIENT

#include "_shape.h"
#include "_vectors.h"

/* All bits of the last `count` lanes, none of the others. */
INLINE NAME(lanes) NAME(last_lanes)(ptrdiff_t count)
{
    static const WHOLE bits[2 * LANES] = {[LANES ... 2 * LANES - 1] = -1};
    NAME(lanes) mask;
    memcpy(&mask, bits + count, sizeof mask);
    return mask;
}

/* Adds to sums (taps_y, taps_x, LANES), in their first lanes, the taps (r, s) to (r + rows - 1, s + columns - 1) of one row of
   the gradient: those of its columns from which a tap of the tile does not see the image, and others a tap alone sees. */
INLINE void NAME(edges)(const Shape *g, const REAL *grads, const REAL *pixels, ptrdiff_t line, ptrdiff_t low, ptrdiff_t high,
                        ptrdiff_t s, REAL *sums, int rows, int columns)
{
    for (int j = 0; j < columns; j++) {
        ptrdiff_t offset = (s + j) * g->dilation_x - g->left, first = offset < 0 ? -offset : 0;
        ptrdiff_t last = g->width - offset < g->out_width ? g->width - offset : g->out_width;
        for (int i = 0; i < rows; i++) {
            REAL sum = 0;
            const REAL *row = pixels + i * line + offset;
            for (ptrdiff_t q = first; q < low && q < last; q++)
                sum += grads[q] * row[q];
            for (ptrdiff_t q = high > first ? high : first; q < last; q++)
                sum += grads[q] * row[q];
            sums[(i * g->taps_x + j) * LANES] += sum;
        }
    }
}

/* A tile's products with one row of the gradient, in columns low to high - 1, which all of its taps see. */
INLINE void NAME(products)(V a[GRADIENT_TILE_ROWS][GRADIENT_TILE_COLUMNS], const REAL *grads, const REAL *pixels, ptrdiff_t line,
                           ptrdiff_t dilation, ptrdiff_t low, ptrdiff_t high, const int rows, const int columns)
{
    ptrdiff_t q = low;
    for (; q + LANES <= high; q += LANES) {
        V gradient = NAME(load)(grads + q);
        _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
            _Pragma("GCC unroll 5") for (int j = 0; j < columns; j++)
                MULTIPLY_ADD(a[i][j], gradient, NAME(load)(pixels + i * line + j * dilation + q));
    }
    if (q < high) { /* the last vector again, without the products that are counted: zero times infinity would not be zero */
        NAME(lanes) mask = NAME(last_lanes)(high - q);
        V gradient = NAME(load)(grads + high - LANES);
        _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
            _Pragma("GCC unroll 5") for (int j = 0; j < columns; j++)
                a[i][j] += (V)((NAME(lanes))(gradient * NAME(load)(pixels + i * line + j * dilation + high - LANES)) & mask);
    }
}

INLINE void NAME(flush)(V a[GRADIENT_TILE_ROWS][GRADIENT_TILE_COLUMNS], REAL *sums, ptrdiff_t taps_x, const int rows, const int columns)
{
    _Pragma("GCC unroll 3") for (int i = 0; i < rows; i++)
        _Pragma("GCC unroll 5") for (int j = 0; j < columns; j++) {
            REAL *place = sums + (i * taps_x + j) * LANES;
            NAME(store)(place, NAME(load)(place) + a[i][j]);
            a[i][j] = (V){0};
        }
}

/* Adds a tile's taps of one pair of channels of one image. */
INLINE void NAME(tile)(const Shape *g, const REAL *grads, const REAL *pixels, REAL *sums, ptrdiff_t r, ptrdiff_t s,
                       const int rows, const int columns)
{
    V a[GRADIENT_TILE_ROWS][GRADIENT_TILE_COLUMNS] = {{{0}}};
    ptrdiff_t line = g->dilation_y * g->width, offset = s * g->dilation_x - g->left;
    ptrdiff_t behind = offset + (columns - 1) * g->dilation_x;
    ptrdiff_t low = offset < 0 ? -offset : 0, high = g->width - behind < g->out_width ? g->width - behind : g->out_width;
    if (high - low < LANES)
        high = low; /* all of it is edges */
    sums += (r * g->taps_x + s) * LANES;
    for (ptrdiff_t p = 0; p < g->out_height; p++, grads += g->out_width) {
        ptrdiff_t y = p * g->stride_y + r * g->dilation_y - g->top;
        if (y >= 0 && y + (rows - 1) * g->dilation_y < g->height) {
            const REAL *row = pixels + y * g->width;
            if (low < high)
                NAME(products)(a, grads, row + offset, line, g->dilation_x, low, high, rows, columns);
            if (low > 0 || high < g->out_width)
                NAME(edges)(g, grads, row, line, low, high, s, sums, rows, columns);
        } else
            for (int i = 0; i < rows; i++, y += g->dilation_y)
                if (y >= 0 && y < g->height) {
                    V b[GRADIENT_TILE_ROWS][GRADIENT_TILE_COLUMNS] = {{{0}}};
                    const REAL *row = pixels + y * g->width;
                    REAL *place = sums + i * g->taps_x * LANES;
                    if (low < high) {
                        NAME(products)(b, grads, row + offset, line, g->dilation_x, low, high, 1, columns);
                        NAME(flush)(b, place, g->taps_x, 1, columns);
                    }
                    NAME(edges)(g, grads, row, line, low, high, s, place, 1, columns);
                }
    }
    NAME(flush)(a, sums, g->taps_x, rows, columns);
}

/* Adds to sums (taps_y, taps_x, LANES) what one image gives for a pair of channels: grads (P, Q), pixels (H, W). */
static void NAME(weight_gradient)(const Shape *g, const REAL *grads, const REAL *pixels, REAL *sums)
{
    ptrdiff_t r = 0;
    if (g->taps_x == 3)
        for (; r + 3 <= g->taps_y; r += 3)
            NAME(tile)(g, grads, pixels, sums, r, 0, 3, 3);
    for (; r < g->taps_y; r++)
        for (ptrdiff_t s = 0; s < g->taps_x; s += GRADIENT_TILE_COLUMNS)
            switch (g->taps_x - s) {
            case 1: NAME(tile)(g, grads, pixels, sums, r, s, 1, 1); break;
            case 2: NAME(tile)(g, grads, pixels, sums, r, s, 1, 2); break;
            case 3: NAME(tile)(g, grads, pixels, sums, r, s, 1, 3); break;
            case 4: NAME(tile)(g, grads, pixels, sums, r, s, 1, 4); break;
            default: NAME(tile)(g, grads, pixels, sums, r, s, 1, GRADIENT_TILE_COLUMNS);
            }
}
#endif
