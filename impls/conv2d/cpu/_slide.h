/* Direct sums over packed weights, one vector of output channels, for kernels whose neighbouring pixels see what lies side by side, for one
   type of element: each element of a row is read once for all taps that see it, where pixels() of _packed.h reads it for each. */

/* `rows` rows of `columns` pixels, all sums in registers, and the weights of a kernel's row, which is `taps_x` wide. The first element of a row
   that is not padding is `low`, the first behind it that is `high`: with `sides` the others, where these are among the first and
   last taps_x - 1 of a row, are left out, which in a copy would be zeros. The rest is as pixels() has it, but that packed weights and kept sums lie PAIR apart. */
INLINE void NAME(slide)(const int sides, const int taps_x, const int stride, const int rows, const int columns, ptrdiff_t jump,
                        const REAL *input, ptrdiff_t low, ptrdiff_t high, const Tap *taps, ptrdiff_t runs, ptrdiff_t length,
                        ptrdiff_t step, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far,
                        const REAL *begun, REAL *kept)
{
    const int count = rows * columns, last = (columns - 1) * stride; /* where the last pixel's first tap lies */
    V sums[TILE];
    const V start = NAME(load_some)(bias, 0, outputs);
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++) sums[t] = begun == NULL ? start : NAME(load)(begun + t * PAIR);
    for (ptrdiff_t run = 0; run < runs; run++, taps += step, packed += step * PAIR) {
        const REAL *factors = packed;
        for (const Tap *tap = taps, *after = taps + length; tap < after; tap += taps_x, factors += taps_x * PAIR) {
            const REAL *seen = input + tap->place;
            __builtin_prefetch(seen + last + columns * stride + taps_x - 1); /* what the piece to the right sees last */
            V weight[7];
            _Pragma("GCC unroll 7") for (int s = 0; s < taps_x; s++)
            {
                weight[s] = NAME(load)(factors + s * PAIR);
                KEEP(weight[s]);
            }
            _Pragma("GCC unroll 40") for (int x = 0; x < last + taps_x; x++)
            {
                if (sides && (x < taps_x - 1 || x > last) && (x < low || x >= high))
                    continue;
                _Pragma("GCC unroll 2") for (int row = 0; row < rows; row++)
                {
                    V pixel = NAME(splat)(seen[row * jump + x]);
                    KEEP(pixel); /* or it would be read for each tap */
                    _Pragma("GCC unroll 7") for (int s = 0; s < taps_x; s++) if (x >= s && x - s <= last && (x - s) % stride == 0)
                        sums[row * columns + (x - s) / stride] += pixel * weight[s];
                }
            }
        }
    }
    if (kept != NULL) {
        _Pragma("GCC unroll 16") for (int t = 0; t < count; t++) NAME(store)(kept + t * PAIR, sums[t]);
        return;
    }
    V block[LANES];
    _Pragma("GCC unroll 2") for (int at = 0; at < count; at += LANES)
    {
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) block[i] = at + i < count ? sums[at + i] : (V){0};
        NAME(transpose)(block);
        _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) if (k < outputs)
            NAME(store_first)(output + k * far + at, block[k], count - at);
    }
}

#define SEEN                                                                                                                     \
    ptrdiff_t jump, const REAL *input, ptrdiff_t low, ptrdiff_t high, const Tap *taps, ptrdiff_t runs, ptrdiff_t length,         \
        ptrdiff_t step, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far, const REAL *begun, \
        REAL *kept
#define GONE jump, input, low, high, taps, runs, length, step, packed, bias, output, outputs, far, begun, kept
/* kind: the width of the kernel, then the stride, a digit each. */
#define SLIDE(kind, rows, columns)                                                                                               \
    static void NAME(slide_##kind##_##rows##_##columns)(SEEN)                                                                    \
    {                                                                                                                            \
        if (low > 0 || high < (columns - 1) * (kind % 10) + kind / 10)                                                           \
            NAME(slide)(1, kind / 10, kind % 10, rows, columns, GONE);                                                           \
        else                                                                                                                     \
            NAME(slide)(0, kind / 10, kind % 10, rows, columns, GONE);                                                           \
    }

#define SLID(kind, rows, columns) NAME(slide_##kind##_##rows##_##columns),
#define SLIDES(kind) UP_TO_14(SLIDE, kind, 1) UP_TO_7(SLIDE, kind, 2)
#define BY_ROWS(kind) {{NULL, UP_TO_14(SLID, kind, 1)}, {NULL, UP_TO_7(SLID, kind, 2)}}
SLIDES(31) SLIDES(32) SLIDES(51) SLIDES(52) SLIDES(71) SLIDES(72)
static void (*const NAME(slide_of)[3][2][2][TILE + 1])(SEEN) = {
    {BY_ROWS(31), BY_ROWS(32)}, {BY_ROWS(51), BY_ROWS(52)}, {BY_ROWS(71), BY_ROWS(72)}};
#undef SEEN
#undef GONE
#undef SLIDE
#undef SLID
#undef SLIDES
#undef BY_ROWS
