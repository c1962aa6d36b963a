/* Tiles of several output channels at once, for one type of element: each vector of the input, once loaded, serves them all, and
   their weights are read where they lie. See cpu.cython_direct, and _rows.h, whose tiles these are, of one output row each,
   and _laid.h. */

#ifndef CONVBENCH_SEVERAL
#define CONVBENCH_SEVERAL
#define HALF (TILE == 6 ? 3 : 6) /* outputs that one pointer to weights serves: for more GCC has too few registers */
#define MOST_OUTPUTS (2 * HALF)  /* of a tile; with two vectors of each 12 of 16 registers hold sums, or 24 of 32 */
#define POWER 1                  /* of a tile: 1 << POWER vectors */

/* Where the pixels of a tile are: at places of the input; there, from where they are laid out on the way, for other outputs of the tile; or
   laid out, all that each tap sees behind what the one before does. */
enum { PLACES, LAYING, LAID_OUT };
#endif

#define EACH_OUTPUT(k) _Pragma("GCC unroll 28") for (int k = 0; k < count; k++)
/* What each vector v of output channel k does at `to`, by one pointer: GCC would have one for each channel, and no registers for so many. */
#define TO_EACH_OUTPUT(begin, far, does)                                                                               \
    {                                                                                                                  \
        REAL *to = begin;                                                                                              \
        EACH_OUTPUT(k)                                                                                                 \
        {                                                                                                              \
            KEEP_POINTER(to);                                                                                          \
            VECTORS(v) does;                                                                                           \
            to += far;                                                                                                 \
        }                                                                                                              \
    }

/* `count` output channels, `far` elements apart, whose sums run over `taps` places of the input and whose weights are `row` apart. copies:
   the tiles laid out, which then are one tile's width apart in the output; without a bias its sums go on. */
INLINE void NAME(several)(const int count, const int vectors, const int pixels, const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps,
                          const REAL *input, REAL *copies, const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far)
{
#define LOAD_TAP(from)                                                                                                             \
    KEEP_POINTER(low);                                                                                                             \
    KEEP_POINTER(high);                                                                                                            \
    LOAD(from)
#define ADD_TAP                                                                                                                    \
    EACH_OUTPUT(k)                                                                                                                 \
    {                                                                                                                              \
        const V w = NAME(splat)(k < HALF ? low[k * row] : high[(k - HALF) * row]);                                                 \
        VECTORS(v) MULTIPLY_ADD(sums[k][v], w, x[v]);                                                                              \
    }
    const Tiles t = *given; /* a copy, which no store can change */
    for (ptrdiff_t band = 0; band < t.bands; band++)
        for (ptrdiff_t tile = 0; tile < t.tiles; tile++) {
            const REAL *seen = input + band * (pixels == PLACES ? t.step : t.width) + tile * vectors * LANES;
            REAL *copy = copies + band * t.step, *begin = output + band * t.width + tile * vectors * LANES;
            const ptrdiff_t left = t.columns - tile * vectors * LANES;
            V sums[MOST_OUTPUTS][1 << POWER], x[1 << POWER];
            if (pixels == PLACES || bias != NULL)
                EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
            else
                TO_EACH_OUTPUT(begin, far, sums[k][v] = NAME(load)(to + v * LANES))
            if (pixels != PLACES && !t.past) /* rows of many outputs are more streams than the machine's own prefetcher follows */
                TO_EACH_OUTPUT(begin, far, __builtin_prefetch(to + v * LANES, 1))
            const REAL *low = weight, *high = weight + HALF * row;
            if (pixels == LAYING) /* more taps at once are slower: the machine has other things to do than sums */
                _Pragma("GCC unroll 2") for (ptrdiff_t i = 0; i < taps; i++, low++, high++)
                {
                    LOAD_TAP(seen + places[i])
                    VECTORS(v) NAME(store)(copy + (i * vectors + v) * LANES, x[v]);
                    if (t.ahead)
                        VECTORS(v) __builtin_prefetch(seen + places[i] + t.ahead + v * LANES);
                    ADD_TAP
                }
            else
                _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < taps; i++, low++, high++)
                {
                    LOAD_TAP(pixels == LAID_OUT ? copy + i * vectors * LANES : seen + places[i])
                    ADD_TAP
                }
            if (left < vectors * LANES)
                TO_EACH_OUTPUT(begin, far, NAME(store_first)(to + v * LANES, sums[k][v], left - v * LANES))
            else if (t.past)
                TO_EACH_OUTPUT(begin, far, NAME(stream)(to + v * LANES, sums[k][v]))
            else
                TO_EACH_OUTPUT(begin, far, NAME(store)(to + v * LANES, sums[k][v]))
        }
#undef LOAD_TAP
#undef ADD_TAP
}

#define ARGUMENTS                                                                                                      \
    const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps, const REAL *input, REAL *copies, const REAL *weight,  \
        ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far
#define SEVERAL(count, vectors, pixels)                                                                                \
    static void NAME(several_##count##_##vectors##_##pixels)(ARGUMENTS)                                                \
    {                                                                                                                  \
        NAME(several)(count, vectors, pixels, given, places, taps, input, copies, weight, row, bias, output, far);     \
    }
#define PIXELS(count, pixels) SEVERAL(count, 1, pixels) SEVERAL(count, 2, pixels)
#define ALL(count) PIXELS(count, PLACES) PIXELS(count, LAYING) PIXELS(count, LAID_OUT)
ALL(3) ALL(4) ALL(5) ALL(6)
#if TILE > 6
ALL(7) ALL(8) ALL(9) ALL(10) ALL(11) ALL(12)
#endif
#undef PIXELS
#undef ALL
#undef SEVERAL

/* All outputs of the tiles, in even shares. row: the weights of an output, of which the first are read. places: room for a number for each
   tap of the input. copies: NULL, or the tiles laid out, for which without an input they are, with one there is room. */
static void NAME(all_outputs)(const Shape *g, int power, const Tiles *given, ptrdiff_t *places, const REAL *input, REAL *copies,
                              const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output)
{
#define PIXELS(count, pixels) [pixels] = {NAME(several_##count##_1_##pixels), NAME(several_##count##_2_##pixels)}
#define ALL(count) [count] = {PIXELS(count, PLACES), PIXELS(count, LAYING), PIXELS(count, LAID_OUT)}
    static void (*const kernels[MOST_OUTPUTS + 1][3][1 << POWER])(ARGUMENTS) = {
        ALL(3), ALL(4), ALL(5), ALL(6),
#if TILE > 6
        ALL(7), ALL(8), ALL(9), ALL(10), ALL(11), ALL(12),
#endif
    };
#undef PIXELS
#undef ALL
    const ptrdiff_t far = g->out_height * g->out_width;
    const ptrdiff_t taps = given->channels * given->taps_y * given->taps_x;
    for (ptrdiff_t c = 0, i = 0; input != NULL && c < given->channels; c++)
        for (ptrdiff_t r = 0; r < given->taps_y; r++)
            for (ptrdiff_t s = 0; s < given->taps_x; s++)
                places[i++] = c * given->plane + r * given->line + given->offsets[s];
    const ptrdiff_t shares = (g->outputs + MOST_OUTPUTS - 1) / MOST_OUTPUTS;
    for (ptrdiff_t share = 0; share < shares; share++) {
        const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
        const REAL *from = bias == NULL ? NULL : bias + k;
        const int pixels = copies == NULL ? PLACES : input != NULL && share == 0 ? LAYING : LAID_OUT;
        kernels[count][pixels][power](given, places, taps, input, copies, weight + k * row, row, from, output + k * far, far);
    }
}
#undef ARGUMENTS
