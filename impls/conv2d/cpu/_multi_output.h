/* Tiles of several output channels at once: each vector of the input, once loaded, serves them all, and their weights are read in place.
   See cpu.cython_direct; the tiles are those of _rows.h, of one output row each, and of _im2col_tiles.h. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_MULTI_OUTPUT
#define CONVBENCH_MULTI_OUTPUT

#include "_shape.h"
#include "_tiles.h"
#include "_vectors.h"

/* `count` output channels, `far` elements apart, whose sums run over `taps` places of the input and whose weights are `row` apart. copies:
   the copied tiles, which then are one tile's width apart in the output; without a bias its sums go on. */
INLINE void NAME(multi_output)(const int count, const int vectors, const int pixels, const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps,
                          const REAL *input, REAL *copies, const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far)
{
#define LOAD_TAP(from)                                                                                                 \
    KEEP_POINTER(low);                                                                                                 \
    KEEP_POINTER(high);                                                                                                \
    LOAD(from)
#define ADD_TAP                                                                                                        \
    EACH_OUTPUT(k)                                                                                                     \
    {                                                                                                                  \
        const V w = NAME(splat)(k < OUTPUTS_PER_POINTER ? low[k * row] : high[(k - OUTPUTS_PER_POINTER) * row]);       \
        VECTORS(v) MULTIPLY_ADD(sums[k][v], w, x[v]);                                                                  \
    }
    const Tiles t = *given; /* a copy, which no store can change */
    for (ptrdiff_t band = 0; band < t.bands; band++)
        for (ptrdiff_t tile = 0; tile < t.tiles; tile++) {
            const REAL *seen = input + band * (pixels == IN_PLACE ? t.step : t.width) + tile * vectors * LANES;
            REAL *copy = copies + band * t.step, *begin = output + band * t.width + tile * vectors * LANES;
            const ptrdiff_t left = t.columns - tile * vectors * LANES;
            V sums[MAX_TILE_OUTPUTS][1 << TILE_LOG2_VECTORS], x[1 << TILE_LOG2_VECTORS];
            if (pixels == IN_PLACE || bias != NULL)
                EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
            else
                TO_EACH_OUTPUT(begin, far, sums[k][v] = NAME(load)(to + v * LANES))
            if (pixels != IN_PLACE && !t.streamed) /* rows of many outputs are more streams than the machine's own prefetcher follows */
                TO_EACH_OUTPUT(begin, far, __builtin_prefetch(to + v * LANES, 1))
            const REAL *low = weight, *high = weight + OUTPUTS_PER_POINTER * row;
            if (pixels == COPYING) /* more taps at once are slower: the machine has other things to do than sums */
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
                    LOAD_TAP(pixels == COPIED ? copy + i * vectors * LANES : seen + places[i])
                    ADD_TAP
                }
            if (left < vectors * LANES)
                TO_EACH_OUTPUT(begin, far, NAME(store_first)(to + v * LANES, sums[k][v], left - v * LANES))
            else if (t.streamed)
                TO_EACH_OUTPUT(begin, far, NAME(stream)(to + v * LANES, sums[k][v]))
            else
                TO_EACH_OUTPUT(begin, far, NAME(store)(to + v * LANES, sums[k][v]))
        }
#undef LOAD_TAP
#undef ADD_TAP
}

#define MULTI_OUTPUT_ARGUMENTS                                                                                         \
    const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps, const REAL *input, REAL *copies, const REAL *weight,  \
        ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far
#define MULTI_OUTPUT_TILE(count, vectors, pixels)                                                                        \
    static void NAME(multi_output_##count##_##vectors##_##pixels)(MULTI_OUTPUT_ARGUMENTS)                                \
    {                                                                                                                    \
        NAME(multi_output)(count, vectors, pixels, given, places, taps, input, copies, weight, row, bias, output, far);  \
    }
#define TILES_FROM(count, pixels) MULTI_OUTPUT_TILE(count, 1, pixels) MULTI_OUTPUT_TILE(count, 2, pixels)
#define TILES_OF(count) TILES_FROM(count, IN_PLACE) TILES_FROM(count, COPYING) TILES_FROM(count, COPIED)
TILES_OF(3) TILES_OF(4) TILES_OF(5) TILES_OF(6)
#if REGISTERS == 32
TILES_OF(7) TILES_OF(8) TILES_OF(9) TILES_OF(10) TILES_OF(11) TILES_OF(12)
#endif
#undef TILES_FROM
#undef TILES_OF
#undef MULTI_OUTPUT_TILE

/* All outputs of the tiles, in even shares. row: the weights of an output, of which the first are read. places: room for a number for each
   tap of the input. copies: NULL, or without an input the copied tiles, with one room for them. */
static void NAME(all_outputs)(const Shape *g, int power, const Tiles *given, ptrdiff_t *places, const REAL *input, REAL *copies,
                              const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output)
{
#define TILES_FROM(count, pixels) [pixels] = {NAME(multi_output_##count##_1_##pixels), NAME(multi_output_##count##_2_##pixels)}
#define TILES_OF(count) [count] = {TILES_FROM(count, IN_PLACE), TILES_FROM(count, COPYING), TILES_FROM(count, COPIED)}
    static void (*const kernels[MAX_TILE_OUTPUTS + 1][3][1 << TILE_LOG2_VECTORS])(MULTI_OUTPUT_ARGUMENTS) = {
        TILES_OF(3), TILES_OF(4), TILES_OF(5), TILES_OF(6),
#if REGISTERS == 32
        TILES_OF(7), TILES_OF(8), TILES_OF(9), TILES_OF(10), TILES_OF(11), TILES_OF(12),
#endif
    };
#undef TILES_FROM
#undef TILES_OF
    const ptrdiff_t far = g->out_height * g->out_width;
    const ptrdiff_t taps = given->channels * given->taps_y * given->taps_x;
    for (ptrdiff_t c = 0, i = 0; input != NULL && c < given->channels; c++)
        for (ptrdiff_t r = 0; r < given->taps_y; r++)
            for (ptrdiff_t s = 0; s < given->taps_x; s++)
                places[i++] = c * given->plane + r * given->line + given->offsets[s];
    const ptrdiff_t shares = (g->outputs + MAX_TILE_OUTPUTS - 1) / MAX_TILE_OUTPUTS;
    for (ptrdiff_t share = 0; share < shares; share++) {
        const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
        const REAL *from = bias == NULL ? NULL : bias + k;
        const int pixels = copies == NULL ? IN_PLACE : input != NULL && share == 0 ? COPYING : COPIED;
        kernels[count][pixels][power](given, places, taps, input, copies, weight + k * row, row, from, output + k * far, far);
    }
}
#undef MULTI_OUTPUT_ARGUMENTS
#endif
