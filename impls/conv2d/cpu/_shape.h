/* One group of a convolution in numbers: what the kernels of every type of element are told. */
#ifndef CONVBENCH_SHAPE
#define CONVBENCH_SHAPE
#include <stddef.h>

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

#define ALONE (1 << 12) /* products, for each byte of a vector, that one thread has summed before others would have begun */

/* How many of so many threads `groups` such groups of images, of one or of several, are worth; vector: its bytes. */
static inline ptrdiff_t team(const Shape *g, ptrdiff_t groups, ptrdiff_t threads, ptrdiff_t vector)
{
    const ptrdiff_t each = g->outputs * g->out_height * g->out_width * g->channels * g->taps_y * g->taps_x;
    return groups * each < vector * ALONE ? 1 : threads;
}
#endif
