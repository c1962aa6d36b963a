/* Depthwise sums, a vector of channels at a time: vectors along rows would often be partly empty. See cpu.cython_direct. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_DEPTHWISE
#define CONVBENCH_DEPTHWISE

#include "_direct_plan.h"
#include "_vectors.h"

/* Columns of an image with its padding, as far as outputs see it or it has pixels. */
static ptrdiff_t NAME(padded_width)(const Shape *g)
{
    const ptrdiff_t seen = columns_seen(g, g->out_width);
    return g->left + g->width > seen ? g->left + g->width : seen;
}

/* How many bands the output rows of each image are cut into, where there are so many vectors of channels in all images: so many that
   what each sees stays near a core. */
static ptrdiff_t NAME(depthwise_bands)(const Shape *g, ptrdiff_t threads, ptrdiff_t vectors)
{
    const ptrdiff_t width = NAME(padded_width)(g), row = (g->stride_y * width + g->out_width) * VECTOR_SIZE;
    ptrdiff_t rows = (DEPTHWISE_BAND_BYTES - (rows_seen(g, 1) - g->stride_y) * width * VECTOR_SIZE) / row;
    rows = rows < 2 * g->taps_y ? 2 * g->taps_y : rows;
    return even_parts(g, (g->out_height + rows - 1) / rows, vectors, threads);
}

/* Elements of what the largest of these bands sees. */
static ptrdiff_t NAME(depthwise_image)(const Shape *g, ptrdiff_t bands)
{
    return LANES * rows_seen(g, (g->out_height + bands - 1) / bands) * NAME(padded_width)(g);
}

/* Elements of the weights of a vector of channels. */
static ptrdiff_t NAME(depthwise_weights)(const Shape *g) { return LANES * ((g->taps_y * g->taps_x + LANES - 1) / LANES * LANES); }

/* Elements of work: that image, of a vector of channels, and the sums, whose last are transposed with what lies behind. */
static ptrdiff_t NAME(depthwise_work)(const Shape *g, ptrdiff_t bands)
{
    const ptrdiff_t sums = (g->out_height + bands - 1) / bands * g->out_width;
    return NAME(depthwise_image)(g, bands) + LANES * (sums + LANES);
}

/* The first `count`, at most LANES, columns of a matrix, whose rows are channels and lie `far` elements apart, as vectors of channels. */
INLINE void NAME(gather)(const REAL *matrix, ptrdiff_t far, ptrdiff_t channels, ptrdiff_t count, V columns[LANES])
{
    _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++)
        columns[c] = c < channels ? NAME(load_some)(matrix + c * far, 0, count) : (V){0};
    NAME(transpose)(columns);
}

/* How many elements, at most LANES, there are from `at` on up to `end` or to where the first channel's next line of the cache begins. Where
   channels lie powers of two apart, all of them begin there too, and lines that two vectors share would be evicted between them. */
INLINE ptrdiff_t NAME(until_aligned)(const REAL *at, const REAL *end)
{
    const ptrdiff_t count = LANES - (ptrdiff_t)((size_t)at % VECTOR_SIZE / SIZE);
    return count < end - at ? count : end - at;
}

#define SUMS_ARGUMENTS                                                                                                 \
    const Shape *g, ptrdiff_t taps_y, const REAL *seen, ptrdiff_t width, const REAL *factors, V start, REAL *target
typedef void NAME(sums)(SUMS_ARGUMENTS);

/* `count` sums, at most DEPTHWISE_SUMS, through `taps_y` rows of the kernel. Where the compiler knows how many taps a row of the kernel has and the
   stride, each vector of the input is loaded once for all sums that see it, and dilation_x is taken to be 1; where it does not, taps_x and
   stride_x are 0. */
INLINE void NAME(sum)(const int count, const int taps_x, const int stride_x, SUMS_ARGUMENTS)
{
    V total[DEPTHWISE_SUMS], held[7];
    _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) total[i] = start;
    for (ptrdiff_t r = 0; r < taps_y; r++) {
        const REAL *from = seen + r * g->dilation_y * width * LANES;
        if (taps_x) {
            _Pragma("GCC unroll 7") for (int s = 0; s < taps_x; s++) held[s] = NAME(load)(factors + s * LANES);
            _Pragma("GCC unroll 19") for (int x = 0; x < (count - 1) * stride_x + taps_x; x++)
            {
                const V pixel = NAME(load)(from + x * LANES);
                _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) if (x >= i * stride_x && x < i * stride_x + taps_x)
                    MULTIPLY_ADD(total[i], held[x - i * stride_x], pixel);
            }
            factors += taps_x * LANES;
            continue;
        }
        for (ptrdiff_t s = 0; s < g->taps_x; s++, factors += LANES)
            _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) MULTIPLY_ADD(
                total[i], NAME(load)(factors), NAME(load)(from + (i * g->stride_x + s * g->dilation_x) * LANES));
    }
    _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) NAME(store)(target + i * LANES, total[i]);
}
#define SUMS(count, taps_x, stride_x)                                                                                  \
    static void NAME(sums_##count##_##taps_x##_##stride_x)(SUMS_ARGUMENTS)                                             \
    {                                                                                                                  \
        NAME(sum)(count, taps_x, stride_x, g, taps_y, seen, width, factors, start, target);                            \
    }
SUMS(1, 0, 0)
SUMS(2, 0, 0)
SUMS(3, 0, 0)
SUMS(4, 0, 0)
SUMS(5, 0, 0)
SUMS(6, 0, 0)
SUMS(7, 0, 0)
SUMS(7, 3, 1)
SUMS(7, 5, 1)
SUMS(7, 7, 1)
SUMS(7, 3, 2)
SUMS(7, 5, 2)
SUMS(7, 7, 2)

/* What makes `count` sums, one to DEPTHWISE_SUMS. */
static NAME(sums) *NAME(choose_sums)(const Shape *g, ptrdiff_t count)
{
    static NAME(sums) *const any[DEPTHWISE_SUMS] = {NAME(sums_1_0_0), NAME(sums_2_0_0), NAME(sums_3_0_0), NAME(sums_4_0_0),
                                              NAME(sums_5_0_0), NAME(sums_6_0_0), NAME(sums_7_0_0)};
    static NAME(sums) *const known[2][3] = {{NAME(sums_7_3_1), NAME(sums_7_5_1), NAME(sums_7_7_1)},
                                            {NAME(sums_7_3_2), NAME(sums_7_5_2), NAME(sums_7_7_2)}};
    const ptrdiff_t taps = g->taps_x;
    if (count == DEPTHWISE_SUMS && g->dilation_x == 1 && g->stride_x <= 2 && (taps == 3 || taps == 5 || taps == 7))
        return known[g->stride_x - 1][taps / 2 - 1];
    return any[count - 1];
}

/* Zeros as `vectors` vectors: beside a row there are one or two, for which a call of memset would take longer. */
INLINE void NAME(clear)(REAL *to, ptrdiff_t vectors)
{
    V zero = {0};
    for (ptrdiff_t i = 0; i < vectors; i++) {
        KEEP(zero);
        NAME(store)(to + i * LANES, zero);
    }
}

/* Fill `to` with rows first to last - 1, which may lie in the padding, of `channels` channels of an image: for each pixel, and for the
   padding beside the rows, a vector of channels. */
static void NAME(depthwise_pad)(const Shape *g, const REAL *input, ptrdiff_t channels, ptrdiff_t first, ptrdiff_t last, REAL *to)
{
    const ptrdiff_t width = NAME(padded_width)(g), beside = width - g->width, pixels = g->height * g->width;
    const ptrdiff_t begin = first > 0 ? first : 0, end = last < g->height ? last : g->height;
    V block[LANES];
    if (begin >= end) {
        NAME(clear)(to, (last - first) * width);
        return;
    }
    NAME(clear)(to, (begin - first) * width + g->left);
    to += ((begin - first) * width + g->left) * LANES;
    for (ptrdiff_t y = begin; y < end; y++) /* from one row's end to where the next begins */
        NAME(clear)(to + ((y - begin) * width + g->width) * LANES, y < end - 1 ? beside : beside - g->left + (last - end) * width);
    const REAL *const input_end = input + end * g->width;
    input += begin * g->width;
    for (ptrdiff_t x = 0, count; input < input_end; input += count) {
        count = NAME(until_aligned)(input, input_end);
        NAME(gather)(input, pixels, channels, count, block);
        for (int i = 0; i < LANES && i < count; i++) {
            NAME(store)(to + x * LANES, block[i]);
            if (++x == g->width) {
                x = 0;
                to += width * LANES;
            }
        }
    }
}

/* Prefetch the part-th of `parts` parts of `count` elements: the machine does not foresee where short planes go on. */
INLINE void NAME(prefetch)(const REAL *elements, ptrdiff_t count, const int to_write, ptrdiff_t part, ptrdiff_t parts)
{
    for (ptrdiff_t at = count * part / parts; at < count * (part + 1) / parts; at += LANES)
        to_write ? __builtin_prefetch(elements + at, 1) : __builtin_prefetch(elements + at, 0);
}

/* Fill `factors`, vectors of channels, from the weights of `channels` of them. */
static void NAME(depthwise_transpose)(const Shape *g, const REAL *weight, ptrdiff_t channels, REAL *factors)
{
    const ptrdiff_t taps = g->taps_y * g->taps_x;
    V block[LANES];
    for (ptrdiff_t at = 0; at < taps; at += LANES) {
        NAME(gather)(weight + at, taps, channels, taps - at, block);
        for (int i = 0; i < LANES; i++) NAME(store)(factors + (at + i) * LANES, block[i]);
    }
}

/* Output rows first to last - 1 of `channels`, at most LANES, channels of one image, each with a kernel of its own; pointers are at
   the first of them, bar factors, their weights transposed. bands: how many the image is cut into; next: the input that is wanted
   after this one, as many channels of it, or NULL. */
static void NAME(depthwise)(const Shape *g, const REAL *input, const REAL *factors, const REAL *bias, REAL *output,
                            ptrdiff_t channels, ptrdiff_t first, ptrdiff_t last, ptrdiff_t bands, const REAL *next, REAL *work)
{
    const ptrdiff_t width = NAME(padded_width)(g), plane = g->out_height * g->out_width;
    const ptrdiff_t top = first * g->stride_y - g->top, outputs = (last - first) * g->out_width;
    REAL *sums = work + NAME(depthwise_image)(g, bands);
    const V start = NAME(load_some)(bias, 0, channels);
    V block[LANES];
    NAME(depthwise_pad)(g, input, channels, top, top + rows_seen(g, last - first), work);
    const ptrdiff_t rest = g->out_width % DEPTHWISE_SUMS, whole_to = g->out_width - rest;
    NAME(sums) *const whole = NAME(choose_sums)(g, DEPTHWISE_SUMS), *const others = NAME(choose_sums)(g, rest ? rest : 1);
    for (ptrdiff_t p = 0; p < last - first; p++) {
        if (next) {
            NAME(prefetch)(next, channels * g->height * g->width, 0, p, last - first);
            NAME(prefetch)(output, channels * plane, 1, p, last - first);
        }
        const ptrdiff_t y = top + p * g->stride_y, below = (g->height - y + g->dilation_y - 1) / g->dilation_y;
        const ptrdiff_t begin = y < 0 ? (-y + g->dilation_y - 1) / g->dilation_y : 0; /* the first row of the kernel in the image */
        const ptrdiff_t end = below < begin ? begin : below < g->taps_y ? below : g->taps_y;
        const REAL *seen = work + (p * g->stride_y + begin * g->dilation_y) * width * LANES, *rows = factors + begin * g->taps_x * LANES;
        REAL *target = sums + p * g->out_width * LANES;
        for (ptrdiff_t q = 0; q < whole_to; q += DEPTHWISE_SUMS)
            whole(g, end - begin, seen + q * g->stride_x * LANES, width, rows, start, target + q * LANES);
        if (rest)
            others(g, end - begin, seen + whole_to * g->stride_x * LANES, width, rows, start, target + whole_to * LANES);
    }
    output += first * g->out_width;
    for (ptrdiff_t at = 0, count; at < outputs; at += count) {
        count = NAME(until_aligned)(output + at, output + outputs);
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = NAME(load)(sums + (at + i) * LANES);
        NAME(transpose)(block);
        _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) if (c < channels)
            NAME(store_first)(output + c * plane + at, block[c], count);
    }
}
#endif
