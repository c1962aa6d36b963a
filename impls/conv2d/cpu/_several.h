/* Tiles of several output channels at once, for one type of element: each vector of the input, once loaded, serves them all, and
   their weights are read where they lie. See cpu.cython_direct, and _rows.h, whose tiles these are, of one output row each,
   and _laid.h. */

#ifndef CONVBENCH_SEVERAL
#define CONVBENCH_SEVERAL
#define MOST_OUTPUTS 6 /* of a tile; with two vectors of each 12 of 16 registers hold sums */
#define POWER 1        /* of a tile: 1 << POWER vectors */

/* Whether sums of so many outputs are faster than those of four rows of one output, which want more registers. */
static int has_several(const Shape *g) { return TILE == 6 && g->outputs > 2; }
#endif

/* `count` output channels, `far` elements apart, whose sums run over `taps` places of the input and whose weights are `row` apart. laid:
   the places are one tile's width apart, `places` is not read, a load of twelve, and without a bias the output's sums go on. */
INLINE void NAME(several)(const int count, const int vectors, const int laid, const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps,
                          const REAL *input, const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far)
{
#define EACH_OUTPUT(k) _Pragma("GCC unroll 6") for (int k = 0; k < count; k++)
    const Tiles t = *given; /* a copy, which no store can change */
    for (ptrdiff_t band = 0; band < t.bands; band++)
        for (ptrdiff_t tile = 0; tile < t.tiles; tile++) {
            const REAL *seen = input + band * t.step + tile * vectors * LANES;
            REAL *to = output + band * t.width + tile * vectors * LANES;
            const ptrdiff_t left = t.columns - tile * vectors * LANES;
            V sums[MOST_OUTPUTS][1 << POWER], x[1 << POWER];
            if (!laid || bias != NULL)
                EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
            else
                EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(load)(to + k * far + v * LANES);
            _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < taps; i++) {
                LOAD(seen + (laid ? i * vectors * LANES : places[i]))
                EACH_OUTPUT(k)
                {
                    const V w = NAME(splat)(weight[k * row + i]);
                    VECTORS(v) MULTIPLY_ADD(sums[k][v], w, x[v]);
                }
            }
            if (left < vectors * LANES)
                EACH_OUTPUT(k) VECTORS(v) NAME(store_first)(to + k * far + v * LANES, sums[k][v], left - v * LANES);
            else if (t.past)
                EACH_OUTPUT(k) VECTORS(v) NAME(stream)(to + k * far + v * LANES, sums[k][v]);
            else
                EACH_OUTPUT(k) VECTORS(v) NAME(store)(to + k * far + v * LANES, sums[k][v]);
        }
#undef EACH_OUTPUT
}

#define ARGUMENTS                                                                                                      \
    const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps, const REAL *input, const REAL *weight,                \
        ptrdiff_t row, const REAL *bias, REAL *output, ptrdiff_t far
#define SEVERAL(count, vectors, laid)                                                                                  \
    static void NAME(several_##count##_##vectors##_##laid)(ARGUMENTS)                                                  \
    {                                                                                                                  \
        NAME(several)(count, vectors, laid, given, places, taps, input, weight, row, bias, output, far);               \
    }
#define ALL(count) SEVERAL(count, 1, 0) SEVERAL(count, 2, 0) SEVERAL(count, 1, 1) SEVERAL(count, 2, 1)
ALL(3) ALL(4) ALL(5) ALL(6)
#undef ALL
#undef SEVERAL

/* All outputs of the tiles, in even shares. row: the weights of an output, of which the first are read. places: room for a number for each
   tap; NULL where tiles are laid out. */
static void NAME(all_outputs)(const Shape *g, int power, const Tiles *given, ptrdiff_t *places, const REAL *input,
                              const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output)
{
#define ALL(count)                                                                                                     \
    {                                                                                                                  \
        {NAME(several_##count##_1_0), NAME(several_##count##_2_0)},                                                    \
            {NAME(several_##count##_1_1), NAME(several_##count##_2_1)}                                                 \
    }
    static void (*const kernels[MOST_OUTPUTS + 1][2][1 << POWER])(ARGUMENTS) = {
        [3] = ALL(3), [4] = ALL(4), [5] = ALL(5), [6] = ALL(6)};
#undef ALL
    const ptrdiff_t far = g->out_height * g->out_width;
    const ptrdiff_t taps = given->channels * given->taps_y * given->taps_x;
    for (ptrdiff_t c = 0, i = 0; places != NULL && c < given->channels; c++)
        for (ptrdiff_t r = 0; r < given->taps_y; r++)
            for (ptrdiff_t s = 0; s < given->taps_x; s++)
                places[i++] = c * given->plane + r * given->line + given->offsets[s];
    const ptrdiff_t shares = (g->outputs + MOST_OUTPUTS - 1) / MOST_OUTPUTS;
    for (ptrdiff_t share = 0; share < shares; share++) {
        const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
        const REAL *from = bias == NULL ? NULL : bias + k;
        kernels[count][places == NULL][power](given, places, taps, input, weight + k * row, row, from, output + k * far, far);
    }
}
#undef ARGUMENTS
