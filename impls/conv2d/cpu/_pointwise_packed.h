/* Tiles of as many outputs of a 1x1 layer as registers hold sums: weights are packed in the order of their sums, so that one pointer leads
   through them. Pixels are read in place; of many channels further outputs would read them out of cache once more, and the first outputs copy
   them on the way. See cpu.cython_direct, and _pointwise.h for layers whose weights would be packed in vain. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_POINTWISE_PACKED
#define CONVBENCH_POINTWISE_PACKED

#include "_direct_plan.h"
#include "_tiles.h"
#include "_vectors.h"

/* The weights (outputs, channels) share by share, in each the outputs of a channel side by side: as many numbers. */
static void NAME(pack_pointwise)(const Shape *g, const REAL *weight, REAL *packed)
{
    const ptrdiff_t shares = output_shares(g), channels = g->channels;
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

#if REGISTERS == 32
/* Outputs of tiles. input: what the first sees, or, COPIED, what is prefetched, of a channel in `every`, 0 for none; of each other tile the pixels
   behind. ahead, further: how far from what a tile sees the pixels are that are prefetched, into the first cache and into the next, or 0. */
INLINE void NAME(pointwise_packed_tile)(const int count, const int vectors, const int pixels, const Shape *g, ptrdiff_t tiles, const REAL *input,
                         REAL *copies, const REAL *packed, const REAL *bias, REAL *output, int streams, ptrdiff_t ahead, ptrdiff_t further,
                         ptrdiff_t every)
{
    const ptrdiff_t channels = g->channels, plane = g->height * g->width;
    for (ptrdiff_t tile = 0; tile < tiles; tile++, input += vectors * LANES, output += vectors * LANES) {
        const REAL *seen = input, *factors = packed;
        ptrdiff_t wait = every;
        V sums[MAX_POINTWISE_OUTPUTS][1 << TILE_LOG2_VECTORS], x[1 << TILE_LOG2_VECTORS];
        EACH_OUTPUT(k) VECTORS(v) sums[k][v] = NAME(splat)(bias[k]);
        if (!streams) /* rows of many outputs are more streams than the machine's own prefetcher follows */
            TO_EACH_OUTPUT(output, plane, __builtin_prefetch(to + v * LANES, 1))
        for (ptrdiff_t c = 0; c < channels; c++, factors += count) {
            if (pixels == COPIED) {
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
            if (pixels == COPYING)
                VECTORS(v) NAME(store)(copies + v * LANES, x[v]);
            if (pixels != IN_PLACE)
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

#define POINTWISE_ARGUMENTS                                                                                                \
    const Shape *g, ptrdiff_t tiles, const REAL *input, REAL *copies, const REAL *packed, const REAL *bias, REAL *output,  \
        int streams, ptrdiff_t ahead, ptrdiff_t further, ptrdiff_t every
#define POINTWISE_TILE(count, vectors, pixels)                                                                                               \
    static void NAME(pointwise_packed_##count##_##vectors##_##pixels)(POINTWISE_ARGUMENTS)                                                   \
    {                                                                                                                                        \
        NAME(pointwise_packed_tile)(count, vectors, pixels, g, tiles, input, copies, packed, bias, output, streams, ahead, further, every);  \
    }
#define BOTH_WIDTHS(count) POINTWISE_TILE(count, 1, IN_PLACE) POINTWISE_TILE(count, 2, IN_PLACE)
#define ALL_TILES(count) BOTH_WIDTHS(count) POINTWISE_TILE(count, 2, COPYING) POINTWISE_TILE(count, 2, COPIED)
BOTH_WIDTHS(3) BOTH_WIDTHS(4) BOTH_WIDTHS(5) BOTH_WIDTHS(6) BOTH_WIDTHS(7)
ALL_TILES(8) ALL_TILES(9) ALL_TILES(10) ALL_TILES(11) ALL_TILES(12) ALL_TILES(13) ALL_TILES(14)
#define ONE_VECTOR(count) POINTWISE_TILE(count, 1, IN_PLACE)
ONE_VECTOR(15) ONE_VECTOR(16) ONE_VECTOR(17) ONE_VECTOR(18) ONE_VECTOR(19) ONE_VECTOR(20) ONE_VECTOR(21)
ONE_VECTOR(22) ONE_VECTOR(23) ONE_VECTOR(24) ONE_VECTOR(25) ONE_VECTOR(26) ONE_VECTOR(27) ONE_VECTOR(28)
#undef ONE_VECTOR
#undef ALL_TILES
#undef BOTH_WIDTHS
#undef POINTWISE_TILE
#endif

/* Pixels first to last - 1, a vector at least, of an image that packs_weights. packed: what pack_pointwise made; input, bias, output: the
   image's; copies: where it copies_pixels, room for these pixels of all channels. */
static void NAME(pointwise_packed)(const Shape *g, const REAL *input, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int streamed, REAL *copies)
{
#if REGISTERS == 32
#define ONE_VECTOR(count) [count] = {{NAME(pointwise_packed_##count##_1_IN_PLACE)}}
#define BOTH_WIDTHS(count) [count] = {{NAME(pointwise_packed_##count##_1_IN_PLACE), NAME(pointwise_packed_##count##_2_IN_PLACE)}}
#define ALL_TILES(count)                                                                                               \
    [count] = {                                                                                                        \
        [IN_PLACE] = {NAME(pointwise_packed_##count##_1_IN_PLACE), NAME(pointwise_packed_##count##_2_IN_PLACE)},       \
        [COPYING][1] = NAME(pointwise_packed_##count##_2_COPYING),                                                     \
        [COPIED][1] = NAME(pointwise_packed_##count##_2_COPIED),                                                       \
    }
    static void (*const kernels[MAX_POINTWISE_OUTPUTS + 1][3][1 << TILE_LOG2_VECTORS])(POINTWISE_ARGUMENTS) = {
        BOTH_WIDTHS(3), BOTH_WIDTHS(4), BOTH_WIDTHS(5), BOTH_WIDTHS(6), BOTH_WIDTHS(7), ALL_TILES(8), ALL_TILES(9), ALL_TILES(10),
        ALL_TILES(11), ALL_TILES(12), ALL_TILES(13), ALL_TILES(14), ONE_VECTOR(15), ONE_VECTOR(16), ONE_VECTOR(17), ONE_VECTOR(18),
        ONE_VECTOR(19), ONE_VECTOR(20), ONE_VECTOR(21), ONE_VECTOR(22), ONE_VECTOR(23), ONE_VECTOR(24),
        ONE_VECTOR(25), ONE_VECTOR(26), ONE_VECTOR(27), ONE_VECTOR(28),
    };
#undef ALL_TILES
#undef BOTH_WIDTHS
#undef ONE_VECTOR
    const ptrdiff_t channels = g->channels, plane = g->height * g->width, shares = output_shares(g), others = shares - 1;
    const int paged = has_paged_planes(g, SIZE);
    for (ptrdiff_t at = first; at < last;) {
        const int widest = tile_outputs(g) == MAX_POINTWISE_OUTPUTS ? 0 : TILE_LOG2_VECTORS;
        const TileRun tiles = next_tiles(at, last, last - first, LANES, widest);
        const int streams = streamed && is_aligned(g, tiles.at, LANES), copies_them = copies_pixels(g) && tiles.power > 0;
        const ptrdiff_t next = tiles.after < plane ? tiles.after : channels * plane; /* the pixel, or the image, that comes after them */
        for (ptrdiff_t share = 0; share < shares; share++) {
            const ptrdiff_t k = g->outputs * share / shares, count = g->outputs * (share + 1) / shares - k;
            const int pixels = !copies_them ? IN_PLACE : share == 0 ? COPYING : COPIED;
            const int prefetches = share == 0 && channels * plane > MAX_L1_IMAGE_ELEMENTS;
            const ptrdiff_t from = pixels == COPIED ? next + (share - 1) * channels / others * plane : tiles.at;
            const ptrdiff_t ahead = !prefetches   ? 0
                                    : copies_them ? channel_prefetch_distance(g, LANES)
                                                  : prefetch_distance(g, tiles.tile, LANES);
            const int long_planes = channels > MAX_TILE_PREFETCH_CHANNELS && plane > MAX_SHORT_PLANE_ELEMENTS && !paged;
            const ptrdiff_t further = prefetches && !copies_them && long_planes ? 2 * tiles.tile : 0;
            kernels[count][pixels][tiles.power](g, tiles.count, input + from, copies, packed + k * channels, bias + k,
                                                output + k * plane + tiles.at, streams, ahead, further, paged ? 0 : others);
        }
        at = tiles.after;
    }
#undef POINTWISE_ARGUMENTS
#endif
}
#endif
