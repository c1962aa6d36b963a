/* One group of a convolution in numbers, as the kernels of every type of element take it. */
#pragma once

#include "tuning.h"

typedef struct {
    ptrdiff_t channels, height, width;             /* of the input, channels of one group */
    ptrdiff_t outputs, out_height, out_width;      /* of the output, channels of one group */
    ptrdiff_t taps_y, taps_x;                      /* of the kernel */
    ptrdiff_t stride_y, stride_x, dilation_y, dilation_x;
    ptrdiff_t top, left;                           /* padding before the first row and column */
} Shape;

/* The output's rows and columns, by all the rest and what is padded after the last row and column. */
static inline void size_output(Shape *g, ptrdiff_t below, ptrdiff_t right)
{
    g->out_height = (g->top + g->height + below - g->dilation_y * (g->taps_y - 1) - 1) / g->stride_y + 1;
    g->out_width = (g->left + g->width + right - g->dilation_x * (g->taps_x - 1) - 1) / g->stride_x + 1;
}

/* Input rows that `rows` output rows see, and input columns that `columns` output columns see. */
static inline ptrdiff_t rows_seen(const Shape *g, ptrdiff_t rows) { return (rows - 1) * g->stride_y + (g->taps_y - 1) * g->dilation_y + 1; }
static inline ptrdiff_t columns_seen(const Shape *g, ptrdiff_t columns)
{
    return (columns - 1) * g->stride_x + (g->taps_x - 1) * g->dilation_x + 1;
}

/* How many of so many threads are worth starting for `groups` groups of images; vector: its bytes. */
static inline ptrdiff_t useful_threads(const Shape *g, ptrdiff_t groups, ptrdiff_t threads, ptrdiff_t vector)
{
    const ptrdiff_t products = g->outputs * g->out_height * g->out_width * g->channels * g->taps_y * g->taps_x;
    return groups * products < vector * MAX_ONE_THREAD_PRODUCTS_PER_VECTOR_BYTE ? 1 : threads;
}
