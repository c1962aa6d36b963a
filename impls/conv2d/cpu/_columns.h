/* Tiles of as many outputs of a 1x1 layer as registers hold sums, for one type of element: pixels are read where they lie, weights packed in
   the order of their sums, so that one pointer leads through them. See cpu.cython_direct, and _laid.h for layers of more channels and
   outputs, whose pixels would be read from afar for each tile of the same pixels. */

#ifndef CONVBENCH_COLUMNS
#define CONVBENCH_COLUMNS
#define COLUMN (2 * TILE)      /* outputs of a tile of one vector; of two vectors half as many */
#define KEPT_CHANNELS 192      /* up to which more outputs than two vectors have room for are summed so, or any number where */
#define KEPT_NUMBERS (1 << 19) /* a core's own caches do not keep the numbers of an image, and copies wait for memory once more */
#define FAR_PLANE 12288        /* numbers of a channel over which such images, a multiple of four cache lines apart, come slower so */
#define MANY_CHANNELS 16       /* and up to which any number is, for which the nearest cache then keeps what all of them see */
#define COLUMN_PIXELS 192      /* for which weights are not packed in vain, or twice as many for any number of outputs */
#define NEAR_NUMBERS (1 << 13) /* of an image that the nearest cache keeps, whose pixels are not asked for before they are read; */
#define AHEAD_CHANNELS 96      /* others so far ahead, whose sums take about as long as memory, and two tiles */

/* Whether columns() sums these images of a layer that has_one_tap. */
static int has_columns(const Shape *g, ptrdiff_t images)
{
    const ptrdiff_t plane = g->height * g->width, pixels = images * plane, channels = g->channels;
    if (TILE == 6 || g->stride_y != 1 || g->stride_x != 1 || g->out_width != g->width)
        return 0;
    if (g->outputs > COLUMN)
        return channels <= MANY_CHANNELS && pixels >= 2 * COLUMN_PIXELS;
    if (g->outputs > COLUMN / 2 && plane > FAR_PLANE && plane % 64 == 0 && pixels * channels > KEPT_NUMBERS)
        return 0;
    return pixels >= COLUMN_PIXELS &&
           (g->outputs <= COLUMN / 2 || channels <= KEPT_CHANNELS || channels * plane > KEPT_NUMBERS);
}

/* Outputs of a tile, at most, and how many even shares of them there are. */
static ptrdiff_t column_of(const Shape *g) { return g->outputs > COLUMN / 2 && g->outputs <= COLUMN ? COLUMN : COLUMN / 2; }
static ptrdiff_t columns_of(const Shape *g) { return (g->outputs + column_of(g) - 1) / column_of(g); }
#endif

/* The weights (outputs, channels) share by share, in each the outputs of a channel side by side: as many numbers. */
static void NAME(pack_columns)(const Shape *g, const REAL *weight, REAL *packed)
{
    const ptrdiff_t shares = columns_of(g), channels = g->channels;
    for (ptrdiff_t share = 0; share < shares; share++) {
        const ptrdiff_t first = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - first;
        const REAL *from = weight + first * channels;
        REAL *to = packed + first * channels;
        for (ptrdiff_t c = 0; c < channels; c += LANES)
            for (ptrdiff_t k = 0; k < count; k += LANES) {
                V rows[LANES];
                for (int i = 0; i < LANES; i++)
                    rows[i] = k + i < count ? NAME(load_some)(from + (k + i) * channels + c, 0, channels - c) : (V){0};
                NAME(transpose)(rows);
                for (int i = 0; i < LANES && c + i < channels; i++)
                    NAME(store_first)(to + (c + i) * count + k, rows[i], count - k);
            }
    }
}

#if TILE > 6
INLINE void NAME(column)(const int count, const int vectors, const Shape *g, ptrdiff_t tiles, const REAL *input, const REAL *packed,
                         const REAL *bias, REAL *output, int streams, ptrdiff_t ahead)
{
    const ptrdiff_t channels = g->channels, plane = g->height * g->width;
    for (ptrdiff_t tile = 0; tile < tiles; tile++, input += vectors * LANES, output += vectors * LANES) {
        const REAL *seen = input, *factors = packed;
        V sums[COLUMN][1 << POWER], x[1 << POWER];
        EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
        if (!streams) /* rows of many outputs are more streams than the machine's own prefetcher follows */
            TO_EACH_OUTPUT(output, plane, __builtin_prefetch(to + v * LANES, 1))
        for (ptrdiff_t c = 0; c < channels; c++, seen += plane, factors += count) {
            LOAD(seen)
            VECTORS(v) __builtin_prefetch(seen + ahead + v * LANES);
            EACH_OUTPUT(k)
            {
                if (vectors == 1)
                    MULTIPLY_ADD_EACH(sums[k][0], x[0], factors[k]);
                else
                    ADD(NAME(splat)(factors[k]), k)
            }
        }
        if (streams)
            TO_EACH_OUTPUT(output, plane, NAME(stream)(to + v * LANES, sums[k][v]))
        else
            TO_EACH_OUTPUT(output, plane, NAME(store)(to + v * LANES, sums[k][v]))
    }
}

#define ARGUMENTS                                                                                                              \
    const Shape *g, ptrdiff_t tiles, const REAL *input, const REAL *packed, const REAL *bias, REAL *output, int streams,       \
        ptrdiff_t ahead
#define TILE_OF(count, vectors)                                                                                           \
    static void NAME(column_##count##_##vectors)(ARGUMENTS)                                                            \
    {                                                                                                                  \
        NAME(column)(count, vectors, g, tiles, input, packed, bias, output, streams, ahead);                           \
    }
#define BOTH(count) TILE_OF(count, 1) TILE_OF(count, 2)
BOTH(3) BOTH(4) BOTH(5) BOTH(6) BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14)
TILE_OF(15, 1) TILE_OF(16, 1) TILE_OF(17, 1) TILE_OF(18, 1) TILE_OF(19, 1) TILE_OF(20, 1) TILE_OF(21, 1) TILE_OF(22, 1) TILE_OF(23, 1) TILE_OF(24, 1) TILE_OF(25, 1) TILE_OF(26, 1) TILE_OF(27, 1) TILE_OF(28, 1)
#undef BOTH
#undef TILE_OF
#endif

/* Pixels first to last - 1, a vector at least, of an image that has_columns. packed: what pack_columns made; input, bias, output: the image's. */
static void NAME(columns)(const Shape *g, const REAL *input, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int past)
{
#if TILE > 6
#define ONE(count) [count] = {NAME(column_##count##_1)}
#define BOTH(count) [count] = {NAME(column_##count##_1), NAME(column_##count##_2)}
    static void (*const kernels[COLUMN + 1][1 << POWER])(ARGUMENTS) = {
        BOTH(3), BOTH(4), BOTH(5), BOTH(6), BOTH(7), BOTH(8), BOTH(9), BOTH(10), BOTH(11), BOTH(12), BOTH(13), BOTH(14), ONE(15), ONE(16),
        ONE(17), ONE(18), ONE(19), ONE(20), ONE(21), ONE(22), ONE(23), ONE(24), ONE(25), ONE(26), ONE(27), ONE(28),
    };
#undef BOTH
#undef ONE
    const ptrdiff_t shares = columns_of(g), plane = g->height * g->width;
    for (ptrdiff_t at = first; at < last;) {
        const Laid tiles = next_laid(at, last, last - first, LANES, column_of(g) == COLUMN ? 0 : POWER);
        const int streams = past && NAME(is_aligned)(g, tiles.at);
        for (ptrdiff_t share = 0; share < shares; share++) {
            const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
            const ptrdiff_t tiles_ahead = share == 0 && g->channels * plane > NEAR_NUMBERS ? 2 + AHEAD_CHANNELS / g->channels : 0;
            kernels[count][tiles.power](g, tiles.count, input + tiles.at, packed + k * g->channels, bias + k,
                                        output + k * plane + tiles.at, streams, tiles_ahead * tiles.tile);
        }
        at = tiles.after;
    }
#undef ARGUMENTS
#endif
}
