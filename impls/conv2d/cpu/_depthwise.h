/* Depthwise sums of small images, a vector of channels at a time: vectors along rows would often be partly empty. */

/* Rows and columns of an image with its padding, as far as outputs see it or it has pixels. */
static ptrdiff_t NAME(padded)(ptrdiff_t before, ptrdiff_t size, ptrdiff_t out, ptrdiff_t stride, ptrdiff_t taps, ptrdiff_t dilation)
{
    ptrdiff_t seen = (out - 1) * stride + (taps - 1) * dilation + 1;
    return before + size > seen ? before + size : seen;
}
#define PADDED_HEIGHT(g) NAME(padded)(g->top, g->height, g->out_height, g->stride_y, g->taps_y, g->dilation_y)
#define PADDED_WIDTH(g) NAME(padded)(g->left, g->width, g->out_width, g->stride_x, g->taps_x, g->dilation_x)
#define UP(count) (((count) + LANES - 1) / LANES * LANES)

/* Elements of the padded image, of a vector of channels, with which the work begins. They must be zero before the first call; calls
   keep them so where padding lies. */
static ptrdiff_t NAME(depthwise_image)(const Shape *g) { return LANES * PADDED_HEIGHT(g) * PADDED_WIDTH(g); }

/* Elements of work: that image, the outputs and the weights. */
static ptrdiff_t NAME(depthwise_work)(const Shape *g)
{
    return NAME(depthwise_image)(g) + LANES * (UP(g->out_height * g->out_width) + UP(g->taps_y * g->taps_x));
}

/* The rows of a matrix (channels, count) as vectors of channels: its columns. */
INLINE void NAME(gather)(const REAL *matrix, ptrdiff_t count, ptrdiff_t channels, ptrdiff_t at, V columns[LANES])
{
    _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++)
        columns[c] = c < channels ? NAME(load_some)(matrix + c * count + at, 0, count - at) : (V){0};
    NAME(transpose)(columns);
}

/* Sums of a row side by side: enough to hide the time that each takes, few enough for the registers of any machine. */
#define TOGETHER 7
#define SUMS_ARGUMENTS                                                                                                 \
    const Shape *g, const REAL *seen, ptrdiff_t width, const REAL *factors, V start, REAL *target
typedef void NAME(sums)(SUMS_ARGUMENTS);

/* `count` of them. Where the compiler knows how many taps a row of the kernel has and the stride, each vector of the input is loaded
   once for all sums that see it, and dilation_x is taken to be 1; where it does not, taps_x and stride_x are 0. */
INLINE void NAME(sum)(const int count, const int taps_x, const int stride_x, SUMS_ARGUMENTS)
{
    V total[TOGETHER], held[7];
    _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) total[i] = start;
    for (ptrdiff_t r = 0; r < g->taps_y; r++) {
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
        NAME(sum)(count, taps_x, stride_x, g, seen, width, factors, start, target);                                    \
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

/* What makes `count` sums, one to TOGETHER. */
static NAME(sums) *NAME(choose_sums)(const Shape *g, ptrdiff_t count)
{
    static NAME(sums) *const any[TOGETHER] = {NAME(sums_1_0_0), NAME(sums_2_0_0), NAME(sums_3_0_0), NAME(sums_4_0_0),
                                              NAME(sums_5_0_0), NAME(sums_6_0_0), NAME(sums_7_0_0)};
    static NAME(sums) *const known[2][3] = {{NAME(sums_7_3_1), NAME(sums_7_5_1), NAME(sums_7_7_1)},
                                            {NAME(sums_7_3_2), NAME(sums_7_5_2), NAME(sums_7_7_2)}};
    const ptrdiff_t taps = g->taps_x;
    if (count == TOGETHER && g->dilation_x == 1 && g->stride_x <= 2 && (taps == 3 || taps == 5 || taps == 7))
        return known[g->stride_x - 1][taps / 2 - 1];
    return any[count - 1];
}

/* `channels`, at most LANES, channels of one image, each with a kernel of its own; pointers are at the first of them. */
static void NAME(depthwise)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output,
                            ptrdiff_t channels, REAL *work)
{
    const ptrdiff_t width = PADDED_WIDTH(g), pixels = g->height * g->width, outputs = g->out_height * g->out_width;
    const ptrdiff_t taps = g->taps_y * g->taps_x;
    REAL *image = work, *sums = image + NAME(depthwise_image)(g), *factors = sums + UP(outputs) * LANES;
    const V start = NAME(load_some)(bias, 0, channels);
    V block[LANES];
    for (ptrdiff_t at = 0; at < taps; at += LANES) {
        NAME(gather)(weight, taps, channels, at, block);
        for (int i = 0; i < LANES; i++)
            NAME(store)(factors + (at + i) * LANES, block[i]);
    }
    REAL *row = image + (g->top * width + g->left) * LANES;
    for (ptrdiff_t at = 0, x = 0; at < pixels; at += LANES) {
        NAME(gather)(input, pixels, channels, at, block);
        for (int i = 0; i < LANES && at + i < pixels; i++) {
            NAME(store)(row + x * LANES, block[i]);
            if (++x == g->width) {
                x = 0;
                row += width * LANES;
            }
        }
    }
    const ptrdiff_t rest = g->out_width % TOGETHER, first = g->out_width - rest;
    NAME(sums) *const whole = NAME(choose_sums)(g, TOGETHER), *const last = NAME(choose_sums)(g, rest ? rest : 1);
    for (ptrdiff_t p = 0; p < g->out_height; p++) {
        const REAL *seen = image + p * g->stride_y * width * LANES;
        REAL *target = sums + p * g->out_width * LANES;
        for (ptrdiff_t q = 0; q < first; q += TOGETHER)
            whole(g, seen + q * g->stride_x * LANES, width, factors, start, target + q * LANES);
        if (rest)
            last(g, seen + first * g->stride_x * LANES, width, factors, start, target + first * LANES);
    }
    for (ptrdiff_t at = 0; at < outputs; at += LANES) {
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = NAME(load)(sums + (at + i) * LANES);
        NAME(transpose)(block);
        _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) if (c < channels)
            NAME(store_first)(output + c * outputs + at, block[c], outputs - at);
    }
}
