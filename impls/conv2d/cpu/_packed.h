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

/* `rows` rows of `columns` pixels of PAIR output channels, or of the first LANES where `halves` is 1, all sums in registers. input: what
   the first tap of the first pixel sees; pixels lie `stride` elements apart, rows `jump`, and tap i `places[i]` elements on. The first
   `outputs` channels are stored, `far` elements apart, in each the pixels side by side. */
INLINE void NAME(pixels)(const int halves, const int rows, const int columns, const ptrdiff_t stride, const ptrdiff_t jump,
                         const REAL *input, const ptrdiff_t *places, ptrdiff_t taps, const REAL *packed, const REAL *bias,
                         REAL *output, ptrdiff_t outputs, ptrdiff_t far)
{
    const int count = rows * columns;
    V sums[TILE][2];
    const V low = NAME(load_some)(bias, 0, outputs), high = NAME(load_some)(bias + LANES, 0, outputs - LANES);
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
    {
        sums[t][0] = low;
        if (halves == 2)
            sums[t][1] = high;
    }
    for (ptrdiff_t tap = 0; tap < taps; tap++, packed += PAIR) {
        const REAL *seen = input + places[tap];
        const V first = NAME(load)(packed), second = NAME(load)(packed + LANES);
        /* What the piece to the right sees last: planes of many channels are more streams than the machine's own prefetcher follows. */
        __builtin_prefetch(seen + (2 * columns - 1) * stride);
        _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        {
            const V x = NAME(splat)(seen[t / columns * jump + t % columns * stride]);
            sums[t][0] += x * first;
            if (halves == 2)
                sums[t][1] += x * second;
        }
    }
    _Pragma("GCC unroll 2") for (int half = 0; half < halves; half++)
        _Pragma("GCC unroll 16") for (int at = 0; at < count; at += LANES)
        {
            V block[LANES];
            _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = at + i < count ? sums[at + i][half] : (V){0};
            NAME(transpose)(block);
            _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) if (half * LANES + k < outputs)
                NAME(store_first)(output + (half * LANES + k) * far + at, block[k], count - at);
        }
}

#define PIXELS(halves, rows, columns)                                                                                            \
    static void NAME(pixels_##halves##_##rows##_##columns)(ptrdiff_t stride, ptrdiff_t jump, const REAL *input,                  \
                                                           const ptrdiff_t *places, ptrdiff_t taps, const REAL *packed,          \
                                                           const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far)     \
    {                                                                                                                            \
        if (stride == 1)                                                                                                         \
            NAME(pixels)(halves, rows, columns, 1, jump, input, places, taps, packed, bias, output, outputs, far);               \
        else if (stride == 2)                                                                                                    \
            NAME(pixels)(halves, rows, columns, 2, jump, input, places, taps, packed, bias, output, outputs, far);               \
        else                                                                                                                     \
            NAME(pixels)(halves, rows, columns, stride, jump, input, places, taps, packed, bias, output, outputs, far);          \
    }
#define UP_TO_3(f, halves, rows) f(halves, rows, 1) f(halves, rows, 2) f(halves, rows, 3)
#define UP_TO_6(f, halves, rows) UP_TO_3(f, halves, rows) f(halves, rows, 4) f(halves, rows, 5) f(halves, rows, 6)
#define UP_TO_7(f, halves, rows) UP_TO_6(f, halves, rows) f(halves, rows, 7)
#define UP_TO_14(f, halves, rows)                                                                                                \
    UP_TO_7(f, halves, rows) f(halves, rows, 8) f(halves, rows, 9) f(halves, rows, 10) f(halves, rows, 11)                       \
        f(halves, rows, 12) f(halves, rows, 13) f(halves, rows, 14)
#if TILE == 14
#define ONE_ROW UP_TO_14
#define TWO_ROWS UP_TO_7
#else
#define ONE_ROW UP_TO_6
#define TWO_ROWS UP_TO_3
#endif
ONE_ROW(PIXELS, 1, 1)
TWO_ROWS(PIXELS, 1, 2)
ONE_ROW(PIXELS, 2, 1)
TWO_ROWS(PIXELS, 2, 2)

#define ENTRY(halves, rows, columns) NAME(pixels_##halves##_##rows##_##columns),
static void (*const NAME(pixels_of)[2][2][TILE + 1])(ptrdiff_t, ptrdiff_t, const REAL *, const ptrdiff_t *, ptrdiff_t, const REAL *,
                                                     const REAL *, REAL *, ptrdiff_t, ptrdiff_t) = {
    {{NULL, ONE_ROW(ENTRY, 1, 1)}, {NULL, TWO_ROWS(ENTRY, 1, 2)}},
    {{NULL, ONE_ROW(ENTRY, 2, 1)}, {NULL, TWO_ROWS(ENTRY, 2, 2)}},
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
    const int halves = outputs > LANES ? 2 : 1; /* a vector of channels that nobody asked for would take as long as one that is */
    for (ptrdiff_t piece = first; piece < last; piece++) {
        const ptrdiff_t n = piece / NAME(pieces_of)(g), p = piece % NAME(pieces_of)(g) / parts * together, part = piece % parts;
        const ptrdiff_t rows = g->out_height - p < together ? g->out_height - p : together;
        const ptrdiff_t q = g->out_width * part / parts, columns = g->out_width * (part + 1) / parts - q;
        NAME(pixels_of)[halves - 1][rows - 1][columns](g->stride_x, g->stride_y * pitch,
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
