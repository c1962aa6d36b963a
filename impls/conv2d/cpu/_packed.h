/* Direct sums over packed weights, a vector of output channels at a time, for one type of element: see cpu.cython_packed, and
   _vectors.h for REAL and NAME. */

#ifndef PAIR
#define PAIR (2 * LANES) /* output channels at a time */
#endif

/* Fill packed (taps, PAIR) from the weights (outputs, taps) of at most PAIR output channels; zeros for channels beyond. Its length is
   a multiple of LANES taps. */
static void NAME(pack)(const REAL *weight, ptrdiff_t taps, ptrdiff_t outputs, REAL *packed)
{
    for (ptrdiff_t at = 0; at < taps; at += LANES)
        for (int half = 0; half < 2; half++) {
            V rows[LANES];
            _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++)
                rows[k] = half * LANES + k < outputs ? NAME(load_some)(weight + (half * LANES + k) * taps + at, 0, taps - at)
                                                     : (V){0};
            NAME(transpose)(rows);
            _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
                NAME(store)(packed + (at + i) * PAIR + half * LANES, rows[i]);
        }
}

/* `rows` rows of `columns` pixels of PAIR output channels, all sums in registers. input: what the first tap of the first pixel sees;
   pixels lie `stride` elements apart, rows `jump`, and tap i `places[i]` elements on. The first `outputs` channels are stored, `far`
   elements apart, in each the pixels side by side. */
INLINE void NAME(pixels)(const int rows, const int columns, const ptrdiff_t stride, const ptrdiff_t jump, const REAL *input, const ptrdiff_t *places, ptrdiff_t taps,
                         const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far)
{
    const int count = rows * columns;
    V sums[TILE][2];
    const V low = NAME(load_some)(bias, 0, outputs), high = NAME(load_some)(bias + LANES, 0, outputs - LANES);
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
    {
        sums[t][0] = low;
        sums[t][1] = high;
    }
    for (ptrdiff_t tap = 0; tap < taps; tap++, packed += PAIR) {
        const REAL *seen = input + places[tap];
        const V first = NAME(load)(packed), second = NAME(load)(packed + LANES);
        _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        {
            const V x = NAME(splat)(seen[t / columns * jump + t % columns * stride]);
            sums[t][0] += x * first;
            sums[t][1] += x * second;
        }
    }
    _Pragma("GCC unroll 2") for (int half = 0; half < 2; half++)
        _Pragma("GCC unroll 16") for (int at = 0; at < count; at += LANES)
        {
            V block[LANES];
            _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = at + i < count ? sums[at + i][half] : (V){0};
            NAME(transpose)(block);
            _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) if (half * LANES + k < outputs)
                NAME(store_first)(output + (half * LANES + k) * far + at, block[k], count - at);
        }
}

#define PIXELS(rows, columns)                                                                                          \
    static void NAME(pixels_##rows##_##columns)(ptrdiff_t stride, ptrdiff_t jump, const REAL *input,                   \
                                                const ptrdiff_t *places, ptrdiff_t taps, const REAL *packed,           \
                                                const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far)      \
    {                                                                                                                  \
        if (stride == 1)                                                                                               \
            NAME(pixels)(rows, columns, 1, jump, input, places, taps, packed, bias, output, outputs, far);             \
        else if (stride == 2)                                                                                          \
            NAME(pixels)(rows, columns, 2, jump, input, places, taps, packed, bias, output, outputs, far);             \
        else                                                                                                           \
            NAME(pixels)(rows, columns, stride, jump, input, places, taps, packed, bias, output, outputs, far);        \
    }
#define BOTH(columns) PIXELS(1, columns) PIXELS(2, columns)
#define ENTRY1(columns) NAME(pixels_1_##columns)
#define ENTRY2(columns) NAME(pixels_2_##columns)
#define THREE(f) f(1), f(2), f(3)
BOTH(1)
BOTH(2)
BOTH(3)
PIXELS(1, 4)
PIXELS(1, 5)
PIXELS(1, 6)
#if TILE == 14
PIXELS(2, 4)
PIXELS(2, 5)
PIXELS(2, 6)
BOTH(7)
PIXELS(1, 8)
PIXELS(1, 9)
PIXELS(1, 10)
PIXELS(1, 11)
PIXELS(1, 12)
PIXELS(1, 13)
PIXELS(1, 14)
#endif

static void (*const NAME(pixels_of)[2][TILE + 1])(ptrdiff_t, ptrdiff_t, const REAL *, const ptrdiff_t *, ptrdiff_t, const REAL *,
                                                  const REAL *, REAL *, ptrdiff_t, ptrdiff_t) = {
#if TILE == 14
    {NULL, THREE(ENTRY1), ENTRY1(4), ENTRY1(5), ENTRY1(6), ENTRY1(7), ENTRY1(8), ENTRY1(9), ENTRY1(10), ENTRY1(11), ENTRY1(12),
     ENTRY1(13), ENTRY1(14)},
    {NULL, THREE(ENTRY2), ENTRY2(4), ENTRY2(5), ENTRY2(6), ENTRY2(7)},
#else
    {NULL, THREE(ENTRY1), ENTRY1(4), ENTRY1(5), ENTRY1(6)},
    {NULL, THREE(ENTRY2)},
#endif
};

/* Rows of outputs that go together, and pieces that they are cut into, as even and as long as they can be. */
static ptrdiff_t NAME(together)(const Shape *g) { return g->out_width <= TILE / 2 ? 2 : 1; }
static ptrdiff_t NAME(parts)(const Shape *g) { return (g->out_width + TILE - 1) / TILE; }
static ptrdiff_t NAME(pieces_of)(const Shape *g)
{
    return (g->out_height + NAME(together)(g) - 1) / NAME(together)(g) * NAME(parts)(g);
}

/* Pieces first to last - 1 of the outputs, counted through the images, of `outputs` output channels. input: the padded first image,
   whose rows lie `pitch` elements apart and its next image `image` on; output: likewise, at the first of the channels. */
static void NAME(pieces)(const Shape *g, const REAL *input, ptrdiff_t pitch, ptrdiff_t image, const ptrdiff_t *places, ptrdiff_t taps,
                         const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t out_image, ptrdiff_t outputs,
                         ptrdiff_t first, ptrdiff_t last)
{
    const ptrdiff_t parts = NAME(parts)(g), far = g->out_height * g->out_width, together = NAME(together)(g);
    for (ptrdiff_t piece = first; piece < last; piece++) {
        const ptrdiff_t n = piece / NAME(pieces_of)(g), p = piece % NAME(pieces_of)(g) / parts * together, part = piece % parts;
        const ptrdiff_t rows = g->out_height - p < together ? g->out_height - p : together;
        const ptrdiff_t q = g->out_width * part / parts, columns = g->out_width * (part + 1) / parts - q;
        NAME(pixels_of)[rows - 1][columns](g->stride_x, g->stride_y * pitch,
                                           input + n * image + p * g->stride_y * pitch + q * g->stride_x, places, taps, packed, bias,
                                           output + n * out_image + p * g->out_width + q, outputs, far);
    }
}

/* Copy one plane of an image into (height, width) zeros, `top` and `left` from its corner. */
static void NAME(pad)(const Shape *g, const REAL *input, REAL *padded, ptrdiff_t height, ptrdiff_t width)
{
    for (ptrdiff_t y = 0; y < height; y++, padded += width) {
        const ptrdiff_t row = y - g->top, right = g->left + g->width < width ? g->left + g->width : width;
        if (row < 0 || row >= g->height || g->left >= width) {
            memset(padded, 0, width * sizeof(REAL));
            continue;
        }
        memset(padded, 0, g->left * sizeof(REAL));
        memcpy(padded + g->left, input + row * g->width, (right - g->left) * sizeof(REAL));
        memset(padded + right, 0, (width - right) * sizeof(REAL));
    }
}
