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

/* `channels`, at most LANES, channels of one image, each with a kernel of its own; pointers are at the first of them. */
static void NAME(depthwise)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output,
                            ptrdiff_t channels, REAL *work)
{
    const ptrdiff_t width = PADDED_WIDTH(g), pixels = g->height * g->width, outputs = g->out_height * g->out_width;
    const ptrdiff_t taps = g->taps_y * g->taps_x;
    REAL *image = work, *sums = image + PADDED_HEIGHT(g) * width * LANES, *factors = sums + UP(outputs) * LANES;
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
    const ptrdiff_t step = g->stride_x * LANES;
    for (ptrdiff_t p = 0; p < g->out_height; p++)
        for (ptrdiff_t q = 0; q < g->out_width; q += 7) {
            const ptrdiff_t count = g->out_width - q < 7 ? g->out_width - q : 7;
            const REAL *seen = image + (p * g->stride_y * width + q * g->stride_x) * LANES;
            REAL *target = sums + (p * g->out_width + q) * LANES;
            if (count == 7) { /* enough sums at once to hide the time that each takes */
                V total[7] = {start, start, start, start, start, start, start};
                for (ptrdiff_t r = 0, tap = 0; r < g->taps_y; r++)
                    for (ptrdiff_t s = 0; s < g->taps_x; s++, tap++) {
                        const REAL *from = seen + (r * g->dilation_y * width + s * g->dilation_x) * LANES;
                        const V factor = NAME(load)(factors + tap * LANES);
                        _Pragma("GCC unroll 7") for (int i = 0; i < 7; i++)
                            total[i] += factor * NAME(load)(from + i * step);
                    }
                _Pragma("GCC unroll 7") for (int i = 0; i < 7; i++) NAME(store)(target + i * LANES, total[i]);
                continue;
            }
            for (ptrdiff_t i = 0; i < count; i++) {
                V total = start;
                for (ptrdiff_t r = 0, tap = 0; r < g->taps_y; r++)
                    for (ptrdiff_t s = 0; s < g->taps_x; s++, tap++)
                        total += NAME(load)(factors + tap * LANES) *
                                 NAME(load)(seen + i * step + (r * g->dilation_y * width + s * g->dilation_x) * LANES);
                NAME(store)(target + i * LANES, total);
            }
        }
    for (ptrdiff_t at = 0; at < outputs; at += LANES) {
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = NAME(load)(sums + (at + i) * LANES);
        NAME(transpose)(block);
        _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) if (c < channels)
            NAME(store_first)(output + c * outputs + at, block[c], outputs - at);
    }
}
