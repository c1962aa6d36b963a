/* Tiles of as many outputs of a 1x1 layer as registers hold sums, for one type of element: weights are packed in the order of their sums, so
   that one pointer leads through them. Pixels are read where they lie; of many channels further outputs would read them from afar once more,
   and the first outputs copy them on the way. See cpu.cython_direct, and _laid.h for layers whose weights would be packed in vain. */

#ifndef CONVBENCH_COLUMNS
#define CONVBENCH_COLUMNS
#define COLUMN (2 * TILE)      /* outputs of a tile of one vector; of two vectors half as many */
#define MANY_CHANNELS 16       /* up to which the nearest cache keeps what all outputs see, and nothing is laid out; */
#define KEPT_OUTPUTS 16        /* nor for so few outputs, nor for what one vector has room for up to so many */
#define KEPT_CHANNELS 192      /* channels, or where a core's own caches do not keep the numbers of an image, and copies wait for memory */
#define KEPT_NUMBERS (1 << 19) /* once more */
#define COLUMN_PIXELS 192      /* for which weights are not packed in vain, or twice as many for any number of outputs; */
#define LAYING_PIXELS 10       /* and for each output where pixels are laid out */
#define NEAR_NUMBERS (1 << 13) /* of an image that the nearest cache keeps, whose pixels are not asked for before they are read */
#define SHORT_PLANE 1024       /* numbers of a channel, over which the next tiles are asked for as well as the next channels */

static int is_kept(const Shape *g) { return g->channels > KEPT_CHANNELS && g->channels * g->height * g->width <= KEPT_NUMBERS; }

/* Whether columns() lays out what further outputs see. */
static int lays_columns(const Shape *g) { return g->outputs > COLUMN ? g->channels > MANY_CHANNELS : g->outputs > KEPT_OUTPUTS && is_kept(g); }

/* Whether columns() sums these images of a layer that has_one_tap. afar: they are more than AFAR; alone: one thread sums them, which waits for
   no other to pack weights. */
static int has_columns(const Shape *g, ptrdiff_t images, int afar, int alone)
{
    const ptrdiff_t pixels = images * g->height * g->width;
    if (TILE == 6 || g->stride_y != 1 || g->stride_x != 1 || g->out_width != g->width)
        return 0;
    if (g->outputs > COLUMN)
        return lays_columns(g) ? afar && pixels >= LAYING_PIXELS * g->outputs : pixels >= 2 * COLUMN_PIXELS;
    if (g->outputs > COLUMN / 2 && (is_kept(g) ? !afar && !alone : comes_slower(g) && pixels * g->channels > KEPT_NUMBERS))
        return 0;
    return pixels >= (lays_columns(g) ? LAYING_PIXELS * g->outputs : COLUMN_PIXELS);
}

/* Outputs of a tile, at most, and how many even shares of them there are. */
static ptrdiff_t column_of(const Shape *g)
{
    return g->outputs > COLUMN / 2 && g->outputs <= COLUMN && !lays_columns(g) ? COLUMN : COLUMN / 2;
}
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
/* Outputs of tiles. input: what the first sees, or, LAID_OUT, what is asked for, of a channel in `every`, 0 for none; of each other tile the pixels behind.
   ahead, further: how far from what a tile sees what is asked for meanwhile is, for the nearest cache and for the next, or 0. */
INLINE void NAME(column)(const int count, const int vectors, const int pixels, const Shape *g, ptrdiff_t tiles, const REAL *input,
                         REAL *copies, const REAL *packed, const REAL *bias, REAL *output, int streams, ptrdiff_t ahead, ptrdiff_t further,
                         ptrdiff_t every)
{
    const ptrdiff_t channels = g->channels, plane = g->height * g->width;
    for (ptrdiff_t tile = 0; tile < tiles; tile++, input += vectors * LANES, output += vectors * LANES) {
        const REAL *seen = input, *factors = packed;
        ptrdiff_t wait = every;
        V sums[COLUMN][1 << POWER], x[1 << POWER];
        EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
        if (!streams) /* rows of many outputs are more streams than the machine's own prefetcher follows */
            TO_EACH_OUTPUT(output, plane, __builtin_prefetch(to + v * LANES, 1))
        for (ptrdiff_t c = 0; c < channels; c++, factors += count) {
            if (pixels == LAID_OUT) {
                LOAD(copies)
                if (--wait == 0) {
                    VECTORS(v) __builtin_prefetch(seen + v * LANES, 0, 2);
                    seen += plane;
                    wait = every;
                }
            } else {
                LOAD(seen)
                VECTORS(v) __builtin_prefetch(seen + ahead + v * LANES);
                if (further)
                    VECTORS(v) __builtin_prefetch(seen + further + v * LANES, 0, 2);
                seen += plane;
            }
            if (pixels == LAYING)
                VECTORS(v) NAME(store)(copies + v * LANES, x[v]);
            if (pixels != PLACES)
                copies += vectors * LANES;
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
    const Shape *g, ptrdiff_t tiles, const REAL *input, REAL *copies, const REAL *packed, const REAL *bias, REAL *output,      \
        int streams, ptrdiff_t ahead, ptrdiff_t further, ptrdiff_t every
#define TILE_OF(count, vectors, pixels)                                                                                        \
    static void NAME(column_##count##_##vectors##_##pixels)(ARGUMENTS)                                                         \
    {                                                                                                                          \
        NAME(column)(count, vectors, pixels, g, tiles, input, copies, packed, bias, output, streams, ahead, further, every);   \
    }
#define BOTH(count) TILE_OF(count, 1, PLACES) TILE_OF(count, 2, PLACES)
#define ALL(count) BOTH(count) TILE_OF(count, 2, LAYING) TILE_OF(count, 2, LAID_OUT)
BOTH(3) BOTH(4) BOTH(5) BOTH(6) BOTH(7) ALL(8) ALL(9) ALL(10) ALL(11) ALL(12) ALL(13) ALL(14)
#define ONE(count) TILE_OF(count, 1, PLACES)
ONE(15) ONE(16) ONE(17) ONE(18) ONE(19) ONE(20) ONE(21) ONE(22) ONE(23) ONE(24) ONE(25) ONE(26) ONE(27) ONE(28)
#undef ONE
#undef ALL
#undef BOTH
#undef TILE_OF
#endif

/* Pixels first to last - 1, a vector at least, of an image that has_columns. packed: what pack_columns made; input, bias, output: the image's;
   copies: where it lays_columns, room for these pixels of all channels. */
static void NAME(columns)(const Shape *g, const REAL *input, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int past, REAL *copies)
{
#if TILE > 6
#define ONE(count) [count] = {{NAME(column_##count##_1_PLACES)}}
#define BOTH(count) [count] = {{NAME(column_##count##_1_PLACES), NAME(column_##count##_2_PLACES)}}
#define ALL(count)                                                                                                             \
    [count] = {                                                                                                                \
        [PLACES] = {NAME(column_##count##_1_PLACES), NAME(column_##count##_2_PLACES)},                                         \
        [LAYING][1] = NAME(column_##count##_2_LAYING),                                                                         \
        [LAID_OUT][1] = NAME(column_##count##_2_LAID_OUT),                                                                     \
    }
    static void (*const kernels[COLUMN + 1][3][1 << POWER])(ARGUMENTS) = {
        BOTH(3), BOTH(4), BOTH(5), BOTH(6), BOTH(7), ALL(8), ALL(9), ALL(10), ALL(11), ALL(12), ALL(13), ALL(14), ONE(15), ONE(16),
        ONE(17), ONE(18), ONE(19), ONE(20), ONE(21), ONE(22), ONE(23), ONE(24), ONE(25), ONE(26), ONE(27), ONE(28),
    };
#undef ALL
#undef BOTH
#undef ONE
    const ptrdiff_t channels = g->channels, plane = g->height * g->width, shares = columns_of(g), others = shares - 1;
    const int paged = NAME(is_paged)(g);
    for (ptrdiff_t at = first; at < last;) {
        const Laid tiles = next_laid(at, last, last - first, LANES, column_of(g) == COLUMN ? 0 : POWER);
        const int streams = past && NAME(is_aligned)(g, tiles.at), lays = lays_columns(g) && tiles.power > 0;
        const ptrdiff_t next = tiles.after < plane ? tiles.after : channels * plane; /* the pixel, or the image, that comes after them */
        for (ptrdiff_t share = 0; share < shares; share++) {
            const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
            const int pixels = !lays ? PLACES : share == 0 ? LAYING : LAID_OUT, asks = share == 0 && channels * plane > NEAR_NUMBERS;
            const ptrdiff_t from = pixels == LAID_OUT ? next + (share - 1) * channels / others * plane : tiles.at;
            const ptrdiff_t ahead = !asks ? 0 : lays ? next_channels(g, LANES) : asked_ahead(g, tiles.tile, LANES);
            const ptrdiff_t further = asks && !lays && channels > AHEAD_CHANNELS && plane > SHORT_PLANE && !paged ? 2 * tiles.tile : 0;
            kernels[count][pixels][tiles.power](g, tiles.count, input + from, copies, packed + k * channels, bias + k,
                                                output + k * plane + tiles.at, streams, ahead, further, paged ? 0 : others);
        }
        at = tiles.after;
    }
#undef ARGUMENTS
#endif
}
