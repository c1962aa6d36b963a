/* Depthwise sums of small images, a vector of channels at a time: vectors along rows of few columns would often be half empty. */

/* Rows and columns of an image with its padding, as far as outputs see it or it has pixels. */
static ptrdiff_t NAME(padded)(ptrdiff_t before, ptrdiff_t size, ptrdiff_t out, ptrdiff_t stride, ptrdiff_t taps, ptrdiff_t dilation)
{
    ptrdiff_t seen = (out - 1) * stride + (taps - 1) * dilation + 1;
    return before + size > seen ? before + size : seen;
}
#define PADDED_HEIGHT(g) NAME(padded)(g->top, g->height, g->out_height, g->stride_y, g->taps_y, g->dilation_y)
#define PADDED_WIDTH(g) NAME(padded)(g->left, g->width, g->out_width, g->stride_x, g->taps_x, g->dilation_x)
#define UP(count) (((count) + LANES - 1) / LANES * LANES)

/* Elements of work: the padded image, the outputs and the weights, each of a vector of channels. Its beginning must be zero
   before the first call; calls keep it so where padding lies. */
static ptrdiff_t NAME(depthwise_work)(const Shape *g)
{
    return LANES * (PADDED_HEIGHT(g) * PADDED_WIDTH(g) + UP(g->out_height * g->out_width) + UP(g->taps_y * g->taps_x));
}

/* The rows of a matrix (channels, count) as vectors of channels: its columns. */
INLINE void NAME(gather)(const REAL *matrix, ptrdiff_t count, ptrdiff_t channels, ptrdiff_t at, V columns[LANES])
{
    _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++)
        columns[c] = c < channels ? NAME(load_some)(matrix + c * count + at, 0, count - at) : (V){0};
    NAME(transpose)(columns);
}

/* Sums of a row side by side: enough to hide the time that each takes, few enough for any machine's registers. */
#undef TOGETHER
#define TOGETHER 7
#define ROW_ARGUMENTS                                                                                                  \
    const Shape *g, const REAL *seen, ptrdiff_t width, const REAL *factors, V start, REAL *target
typedef void NAME(row)(ROW_ARGUMENTS);

/* `count` of them; size and stride: of the kernel's row where the compiler knows them, 0 where not. */
INLINE void NAME(summed)(const int count, const int size, const int stride, ROW_ARGUMENTS)
{
    V total[TOGETHER], held[7];
    _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) total[i] = start;
    for (ptrdiff_t r = 0; r < g->taps_y; r++) {
        const REAL *from = seen + r * g->dilation_y * width * LANES;
        if (size) { /* each vector of the input is loaded once for all that see it */
            _Pragma("GCC unroll 7") for (int s = 0; s < size; s++) held[s] = NAME(load)(factors + s * LANES);
            _Pragma("GCC unroll 19") for (int x = 0; x < (count - 1) * stride + size; x++)
            {
                const V pixel = NAME(load)(from + x * LANES);
                _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) if (x >= i * stride && x < i * stride + size)
                    MULTIPLY_ADD(total[i], held[x - i * stride], pixel);
            }
            factors += size * LANES;
            continue;
        }
        for (ptrdiff_t s = 0; s < g->taps_x; s++, factors += LANES)
            _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) MULTIPLY_ADD(
                total[i], NAME(load)(factors), NAME(load)(from + (i * g->stride_x + s * g->dilation_x) * LANES));
    }
    _Pragma("GCC unroll 7") for (int i = 0; i < count; i++) NAME(store)(target + i * LANES, total[i]);
}
#define SUMS(count, size, stride)                                                                                      \
    static void NAME(summed_##count##_##size##_##stride)(ROW_ARGUMENTS)                                                \
    {                                                                                                                  \
        NAME(summed)(count, size, stride, g, seen, width, factors, start, target);                                     \
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

static NAME(row) *NAME(pick)(const Shape *g)
{
    static NAME(row) *const known[2][3] = {
        {NAME(summed_7_3_1), NAME(summed_7_5_1), NAME(summed_7_7_1)},
        {NAME(summed_7_3_2), NAME(summed_7_5_2), NAME(summed_7_7_2)},
    };
    const ptrdiff_t size = g->taps_x;
    if (g->dilation_x == 1 && g->stride_x <= 2 && (size == 3 || size == 5 || size == 7))
        return known[g->stride_x - 1][size / 2 - 1];
    return NAME(summed_7_0_0);
}

/* `channels`, at most LANES, channels of one image, each with a kernel of its own; pointers are at the first of them. */
static void NAME(depthwise)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output,
                            ptrdiff_t channels, REAL *work)
{
    const ptrdiff_t width = PADDED_WIDTH(g), pixels = g->height * g->width, outputs = g->out_height * g->out_width;
    const ptrdiff_t taps = g->taps_y * g->taps_x;
    REAL *image = work, *sums = image + PADDED_HEIGHT(g) * width * LANES, *factors = sums + UP(outputs) * LANES;
    const V start = NAME(load_some)(bias, 0, channels);
    static NAME(row) *const few[] = {NAME(summed_1_0_0), NAME(summed_2_0_0), NAME(summed_3_0_0),
                                     NAME(summed_4_0_0), NAME(summed_5_0_0), NAME(summed_6_0_0)};
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
    NAME(row) *const whole = NAME(pick)(g);
    for (ptrdiff_t p = 0; p < g->out_height; p++)
        for (ptrdiff_t q = 0; q < g->out_width; q += TOGETHER) {
            const ptrdiff_t count = g->out_width - q < TOGETHER ? g->out_width - q : TOGETHER;
            (count == TOGETHER ? whole : few[count - 1])(
                g, image + (p * g->stride_y * width + q * g->stride_x) * LANES, width, factors, start,
                sums + (p * g->out_width + q) * LANES);
        }
    for (ptrdiff_t at = 0; at < outputs; at += LANES) {
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = NAME(load)(sums + (at + i) * LANES);
        NAME(transpose)(block);
        _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) if (c < channels)
            NAME(store_first)(output + c * outputs + at, block[c], outputs - at);
    }
}
