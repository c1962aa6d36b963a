/* Tiles of several output channels at once, for one type of element: each vector of the input, once loaded, serves them all, and
   their weights are read where they lie. See cpu.cython_direct, and _rows.h, whose tiles these are, of one output row each. */

#ifndef CONVBENCH_SEVERAL
#define CONVBENCH_SEVERAL
#define MOST_OUTPUTS 6 /* of a tile; with two vectors of each 12 of 16 registers hold sums */
#define POWER 1        /* of a tile: 1 << POWER vectors */

/* Whether sums of so many outputs are faster than those of four rows of one output, which want more registers. */
static int has_several(const Shape *g) { return TILE == 6 && g->outputs > 2; }

/* Whether each output sees one pixel of each channel, so that an image is one long row of tiles; of a vector at least. */
static int has_one_tap(const Shape *g, ptrdiff_t lanes)
{
    return has_several(g) && g->taps_y == 1 && g->taps_x == 1 && g->top == 0 && g->left == 0 && g->out_height * g->out_width >= lanes &&
           (g->out_height - 1) * g->stride_y < g->height && (g->out_width - 1) * g->stride_x < g->width;
}
#endif

/* `count` output channels, `far` elements apart, whose sums run over `taps` places of the input; laid: these are one tile's width apart,
   and `places` is not read, a load of twelve. */
INLINE void NAME(several)(const int count, const int vectors, const int laid, const Tiles *given, const ptrdiff_t *places, ptrdiff_t taps,
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
                LOAD(seen + (laid ? i * vectors * LANES : places[i]))
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
#define SEVERAL(count, vectors, laid)                                                                                  \
    static void NAME(several_##count##_##vectors##_##laid)(ARGUMENTS)                                                  \
    {                                                                                                                  \
        NAME(several)(count, vectors, laid, given, places, taps, input, weight, bias, output, far);                    \
    }
#define ALL(count) SEVERAL(count, 1, 0) SEVERAL(count, 2, 0) SEVERAL(count, 1, 1) SEVERAL(count, 2, 1)
ALL(3) ALL(4) ALL(5) ALL(6)
#undef ALL
#undef SEVERAL

/* All outputs of the tiles, in even shares. places: room for a number for each tap; NULL where tiles are laid out. */
static void NAME(all_outputs)(const Shape *g, int power, const Tiles *given, ptrdiff_t *places, const REAL *input,
                              const REAL *weight, const REAL *bias, REAL *output)
{
#define ALL(count)                                                                                                     \
    {                                                                                                                  \
        {NAME(several_##count##_1_0), NAME(several_##count##_2_0)}, {NAME(several_##count##_1_1), NAME(several_##count##_2_1)} \
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
        kernels[count][places == NULL][power](given, places, taps, input, weight + k * taps, bias + k, output + k * far, far);
    }
}
#undef ARGUMENTS

/* Copies of `tiles` tiles of outputs' pixels from column `first` on, each tile's of a channel side by side: as they lie, a channel's are a page
   or more away from the next one's, again for every six outputs. */
static void NAME(lay_out)(const Shape *g, const REAL *input, ptrdiff_t first, ptrdiff_t tiles, int power, REAL *copies)
{
    const ptrdiff_t plane = g->height * g->width, tile = LANES << power;
    if (g->stride_y == 1 && g->stride_x == 1 && g->out_width == g->width) {
        for (ptrdiff_t c = 0; c < g->channels; c++)
            for (ptrdiff_t t = 0; t < tiles; t++)
                for (ptrdiff_t v = 0; v < tile; v += LANES)
                    NAME(store)(copies + (t * g->channels + c) * tile + v, NAME(load)(input + c * plane + first + t * tile + v));
        return;
    }
    ptrdiff_t seen[LANES << POWER];
    for (ptrdiff_t t = 0; t < tiles; t++) {
        for (ptrdiff_t p = 0; p < tile; p++) {
            const ptrdiff_t column = first + t * tile + p;
            seen[p] = column / g->out_width * g->stride_y * g->width + column % g->out_width * g->stride_x;
        }
        for (ptrdiff_t c = 0; c < g->channels; c++, copies += tile)
            for (ptrdiff_t p = 0; p < tile; p++)
                copies[p] = input[c * plane + seen[p]];
    }
}

/* Columns first to last - 1 of an image that is one long row: has_one_tap. `last` is a vector at least; copies: room for the columns' pixels
   of every channel, or a tile's where these are more. The other arguments as band() has them. */
static void NAME(one_tap)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int past, REAL *copies)
{
    static const ptrdiff_t nowhere = 0;
    for (ptrdiff_t at = first, after; at < last; at = after) {
        const ptrdiff_t left = last - at;
        const int power = left > LANES && last >= LANES << POWER ? POWER : 0;
        const ptrdiff_t tile = LANES << power, tiles = left < tile ? 1 : left / tile;
        const ptrdiff_t column = left < tile ? last - tile : at; /* the last tile begins with outputs of the one before */
        const Tiles given = {0, tile, g->channels * tile, g->channels, 1, 1, 1, tile, tiles, tile, &nowhere,
                             past && g->out_height * g->out_width % LANES == 0 && column % LANES == 0};
        NAME(lay_out)(g, input, column, tiles, power, copies);
        NAME(all_outputs)(g, power, &given, NULL, copies, weight, bias, output + column);
        after = column + tiles * tile;
    }
}
