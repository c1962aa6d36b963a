/* Tiles of several output channels at once, for one type of element: each vector of the input, once loaded, serves them all, and
   their weights are read where they lie. See cpu.cython_direct, and _rows.h, whose tiles these are, of one output row each. */

#ifndef CONVBENCH_SEVERAL
#define CONVBENCH_SEVERAL
#define MOST_OUTPUTS 6 /* of a tile; with two vectors of each 12 of 16 registers hold sums */
#define POWER 1        /* of a tile: 1 << POWER vectors */

/* Whether sums of so many outputs are faster than those of four rows of one output, which want more registers. */
static int has_several(const Shape *g) { return TILE == 6 && g->outputs > 2; }

/* Whether each output sees one pixel of each channel, so that an image is one long row, read where it lies; of a vector at least. */
static int has_one_tap(const Shape *g, ptrdiff_t lanes)
{
    return has_several(g) && g->taps_y == 1 && g->taps_x == 1 && g->stride_y == 1 && g->stride_x == 1 && g->top == 0 && g->left == 0 &&
           g->out_height == g->height && g->out_width == g->width && g->height * g->width >= lanes;
}
#endif

/* `count` output channels, `far` elements apart, whose sums run over `taps` places of the input. */
INLINE void NAME(several)(const int count, const int vectors, const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps,
                          const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t far)
{
#define EACH_OUTPUT(k) _Pragma("GCC unroll 6") for (int k = 0; k < count; k++)
    const Tiles t = *given; /* a copy, which no store can change */
    for (ptrdiff_t band = 0; band < t.bands; band++)
        for (ptrdiff_t tile = 0; tile < t.tiles; tile++) {
            const REAL *seen = input + band * t.step + tile * vectors * LANES;
            REAL *to = output + band * t.width + tile * vectors * LANES;
            const ptrdiff_t left = t.columns - tile * vectors * LANES;
            V sums[MOST_OUTPUTS][1 << POWER], x[1 << POWER];
            EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
            _Pragma("GCC unroll 4") for (ptrdiff_t i = 0; i < taps; i++) {
                LOAD(seen + places[i])
                EACH_OUTPUT(k)
                {
                    const V w = NAME(splat)(weight[k * taps + i]);
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
        const REAL *bias, REAL *output, ptrdiff_t far
#define SEVERAL(count, vectors)                                                                                        \
    static void NAME(several_##count##_##vectors)(ARGUMENTS)                                                           \
    {                                                                                                                  \
        NAME(several)(count, vectors, given, places, taps, input, weight, bias, output, far);                          \
    }
#define BOTH(count) SEVERAL(count, 1) SEVERAL(count, 2)
BOTH(3) BOTH(4) BOTH(5) BOTH(6)
#undef BOTH
#undef SEVERAL

/* All outputs of the tiles, in even shares. places: room for a number for each tap. */
static void NAME(all_outputs)(const Shape *g, int power, const Tiles *given, ptrdiff_t *places, const REAL *input,
                              const REAL *weight, const REAL *bias, REAL *output)
{
#define BOTH(count) {NAME(several_##count##_1), NAME(several_##count##_2)}
    static void (*const kernels[MOST_OUTPUTS + 1][1 << POWER])(ARGUMENTS) = {
        [3] = BOTH(3), [4] = BOTH(4), [5] = BOTH(5), [6] = BOTH(6)};
#undef BOTH
    const ptrdiff_t far = g->out_height * g->out_width;
    ptrdiff_t taps = 0;
    for (ptrdiff_t c = 0; c < given->channels; c++)
        for (ptrdiff_t r = 0; r < given->taps_y; r++)
            for (ptrdiff_t s = 0; s < given->taps_x; s++)
                places[taps++] = c * given->plane + r * given->line + given->offsets[s];
    const ptrdiff_t shares = (g->outputs + MOST_OUTPUTS - 1) / MOST_OUTPUTS;
    for (ptrdiff_t share = 0; share < shares; share++) {
        const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
        kernels[count][power](given, places, taps, input, weight + k * taps, bias + k, output + k * far, far);
    }
}
#undef ARGUMENTS

/* Columns first to last - 1 of an image that is one long row: has_one_tap. `last` is a vector at least. The other arguments as band() has
   them. */
static void NAME(one_tap)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int past, ptrdiff_t *places)
{
    static const ptrdiff_t nowhere = 0;
    const ptrdiff_t plane = g->height * g->width;
    for (ptrdiff_t at = first, after; at < last; at = after) {
        const ptrdiff_t left = last - at, column = left < LANES ? last - LANES : at; /* the last vector begins with outputs of the one before */
        const int power = left >= LANES << POWER ? POWER : 0;
        const ptrdiff_t tiles = power > 0 ? left / (LANES << POWER) : 1;
        const Tiles given = {0, plane, 0, g->channels, 1, 1, tiles, last - column, 1, plane, &nowhere,
                             past && plane % LANES == 0 && column % LANES == 0};
        NAME(all_outputs)(g, power, &given, places, input + column, weight, bias, output + column);
        after = column + tiles * (LANES << power);
    }
}
