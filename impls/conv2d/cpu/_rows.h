/* Tiles of output rows by direct sums, and a band of an image by whichever tiles suit it. See cpu.cython_direct. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_ROWS
#define CONVBENCH_ROWS

#include "_direct_plan.h"
#include "_im2col_tiles.h"
#include "_multi_output.h"
#include "_padded_copy.h"
#include "_single_channel.h"
#include "_tiles.h"
#include "_vectors.h"

#define TILE_ARGUMENTS const Tiles *given, const REAL *input, const REAL *weight, REAL start, REAL *output

/* Begins the loops over tiles, with the sums of one. */
#define BEGIN_TILES                                                                                                    \
    const Tiles t = *given; /* a copy, which no store can change */                                                    \
    for (ptrdiff_t band = 0; band < t.bands; band++)                                                                   \
        for (ptrdiff_t tile = 0; tile < t.tiles; tile++) {                                                             \
            const REAL *seen = input + band * t.step + tile * vectors * LANES, *factors = weight;                      \
            V sums[TILE_ROWS][4], x[4];                                                                                \
            EACH_ROW(j) VECTORS(v) sums[j][v] = NAME(splat)(start);
/* Stores the sums; those of a tile that ends behind the row by way of memory unless `masked`, since GCC moves sums of many taps about
   where there are three ways for them to go. */
#define END_TILES(masked)                                                                                              \
            REAL spare[TILE_ROWS * 4 * LANES], *target = output + band * rows * t.width + tile * vectors * LANES;      \
            const ptrdiff_t left = t.columns - tile * vectors * LANES, cut = left < vectors * LANES;                   \
            REAL *to = cut && !(masked) ? spare : target;                                                              \
            const ptrdiff_t width = cut && !(masked) ? vectors * LANES : t.width;                                      \
            if (cut && (masked))                                                                                       \
                EACH_ROW(j) VECTORS(v) NAME(store_first)(to + j * width + v * LANES, sums[j][v], left - v * LANES);    \
            else if (t.streamed && !cut)                                                                               \
                EACH_ROW(j) VECTORS(v) NAME(stream)(to + j * width + v * LANES, sums[j][v]);                           \
            else                                                                                                       \
                EACH_ROW(j) VECTORS(v) NAME(store)(to + j * width + v * LANES, sums[j][v]);                            \
            if (cut && !(masked))                                                                                      \
                for (int j = 0; j < rows; j++)                                                                         \
                    for (ptrdiff_t q = 0; q < left; q += LANES)                                                        \
                        NAME(store_first)(target + j * t.width + q, NAME(load)(spare + j * width + q), left - q);      \
        }

/* Square kernels whose size and vertical stride the compiler knows; one: of one channel and nine weights, which the registers then
   hold from tile to tile. */
INLINE void NAME(known)(const int vectors, const int size, const int stride, const int one, TILE_ARGUMENTS)
{
    const int rows = TILE_ROWS;
    V held[9];
    if (one)
        _Pragma("GCC unroll 9") for (int i = 0; i < 9; i++)
        {
            held[i] = NAME(splat)(weight[i]);
            KEEP(held[i]);
        }
    BEGIN_TILES
    for (ptrdiff_t c = 0; c < (one ? 1 : t.channels); c++) {
        const REAL *from = seen + c * t.plane;
        _Pragma("GCC unroll 16") for (int i = 0; i < (TILE_ROWS - 1) * stride + size; i++)
        {
            FORGET;
            /* Rows of several planes are more streams than the machine's own prefetcher follows. */
            if (!one && vectors > 2)
                VECTORS(v) __builtin_prefetch(from + (2 * vectors + v) * LANES);
#ifdef SHIFTED
            V whole[5];
            if (stride == 1 && vectors > 2)
                _Pragma("GCC unroll 5") for (int v = 0; v <= vectors; v++)
                {
                    whole[v] = NAME(load)(from + v * LANES);
                    KEEP(whole[v]);
                }
#endif
            _Pragma("GCC unroll 8") for (int s = 0; s < size; s++)
            {
#ifdef SHIFTED
                if (stride == 1 && vectors > 2)
                    VECTORS(v) x[v] = s ? SHIFTED(whole[v], whole[v + 1], s) : whole[v];
                else
#endif
                    LOAD(from + (stride == 1 ? s : t.offsets[s]))
                EACH_ROW(j) if (i - j * stride >= 0 && i - j * stride < size)
                {
                    const int tap = (i - j * stride) * size + s;
                    ADD(one ? held[one ? tap : 0] : NAME(splat)(factors[tap]), j)
                }
            }
            from += t.line;
        }
        factors += size * size;
    }
    END_TILES(one)
}

/* Kernels of three rows and more, stride 1: rows of the input that all output rows of the tile see, and before and after them
   those that some see. */
INLINE void NAME(large)(const int vectors, TILE_ARGUMENTS)
{
    const int rows = TILE_ROWS;
    BEGIN_TILES
    for (ptrdiff_t c = 0; c < t.channels; c++) {
        const REAL *from = seen + c * t.plane;
        _Pragma("GCC unroll 4") for (int i = 0; i < TILE_ROWS - 1; i++)
        {
            for (ptrdiff_t s = 0; s < t.taps_x; s++) {
                LOAD(from + s)
                _Pragma("GCC unroll 4") for (int j = 0; j <= i; j++) ADD(NAME(splat)(factors[(i - j) * t.taps_x + s]), j)
            }
            from += t.line;
        }
        for (ptrdiff_t i = TILE_ROWS - 1; i < t.taps_y; i++) {
            for (ptrdiff_t s = 0; s < t.taps_x; s++) {
                LOAD(from + s)
                EACH_ROW(j) ADD(NAME(splat)(factors[(i - j) * t.taps_x + s]), j)
            }
            from += t.line;
        }
        _Pragma("GCC unroll 4") for (int i = 0; i < TILE_ROWS - 1; i++)
        {
            for (ptrdiff_t s = 0; s < t.taps_x; s++) {
                LOAD(from + s)
                _Pragma("GCC unroll 4") for (int j = i + 1; j < TILE_ROWS; j++)
                    ADD(NAME(splat)(factors[(t.taps_y + i - j) * t.taps_x + s]), j)
            }
            from += t.line;
        }
        factors += t.taps_y * t.taps_x;
    }
    END_TILES(0)
}

/* Any kernel, stride and dilation: output rows that have nothing but the weights in common, and are so many sums that none waits for itself. */
INLINE void NAME(any)(const int vectors, const int rows, TILE_ARGUMENTS)
{
    const ptrdiff_t below = given->step / rows; /* from what an output row sees to what the next one does */
    BEGIN_TILES
    for (ptrdiff_t c = 0; c < t.channels; c++)
        for (ptrdiff_t r = 0; r < t.taps_y; r++)
            for (ptrdiff_t s = 0; s < t.taps_x; s++, factors++) {
                const V tap = NAME(splat)(*factors);
                EACH_ROW(j)
                {
                    LOAD(seen + c * t.plane + r * t.line + t.offsets[s] + j * below)
                    ADD(tap, j)
                }
            }
    END_TILES(0)
}

typedef void NAME(kernel)(TILE_ARGUMENTS);
#define TILE_PARAMETERS given, input, weight, start, output
#define KNOWN(vectors, size, stride, one)                                                                              \
    static void NAME(known_##vectors##_##size##_##stride##_##one)(TILE_ARGUMENTS)                                      \
    {                                                                                                                  \
        NAME(known)(vectors, size, stride, one, TILE_PARAMETERS);                                                      \
    }
#define KNOWN_KERNELS(vectors)                                                                                         \
    KNOWN(vectors, 3, 1, 1)                                                                                            \
    KNOWN(vectors, 3, 2, 1)                                                                                            \
    KNOWN(vectors, 3, 1, 0)                                                                                            \
    KNOWN(vectors, 3, 2, 0)                                                                                            \
    KNOWN(vectors, 5, 1, 0)                                                                                            \
    KNOWN(vectors, 5, 2, 0)                                                                                            \
    KNOWN(vectors, 7, 1, 0)                                                                                            \
    KNOWN(vectors, 7, 2, 0)                                                                                            \
    static void NAME(large_##vectors)(TILE_ARGUMENTS) { NAME(large)(vectors, TILE_PARAMETERS); }                       \
    static void NAME(any_##vectors)(TILE_ARGUMENTS) { NAME(any)(vectors, ANY_TILE_ROWS(vectors), TILE_PARAMETERS); }   \
    static void NAME(single_##vectors)(TILE_ARGUMENTS) { NAME(any)(vectors, 1, TILE_PARAMETERS); }
KNOWN_KERNELS(1)
KNOWN_KERNELS(2)
KNOWN_KERNELS(4)

#define KNOWN_OF(vectors, size, stride, one) NAME(known_##vectors##_##size##_##stride##_##one)
#define PICK(size, stride, one) {KNOWN_OF(1, size, stride, one), KNOWN_OF(2, size, stride, one), KNOWN_OF(4, size, stride, one)}

/* The kernel for tiles of 1 << power vectors; *rows becomes the output rows it makes. */
static NAME(kernel) *NAME(choose)(const Shape *g, int power, ptrdiff_t height, int *rows)
{
    static NAME(kernel) *const known[2][4][3] = {
        {PICK(3, 1, 0), PICK(5, 1, 0), PICK(7, 1, 0), PICK(3, 1, 1)},
        {PICK(3, 2, 0), PICK(5, 2, 0), PICK(7, 2, 0), PICK(3, 2, 1)},
    };
    static NAME(kernel) *const large[3] = {NAME(large_1), NAME(large_2), NAME(large_4)};
    static NAME(kernel) *const any[3] = {NAME(any_1), NAME(any_2), NAME(any_4)};
    static NAME(kernel) *const single[3] = {NAME(single_1), NAME(single_2), NAME(single_4)};
    *rows = TILE_ROWS;
    if (height >= TILE_ROWS && g->dilation_y == 1 && g->dilation_x == 1 && g->stride_y == g->stride_x && g->stride_y <= 2) {
        if (g->taps_y == g->taps_x && (g->taps_y == 3 || g->taps_y == 5 || g->taps_y == 7))
            return known[g->stride_y - 1][g->channels == 1 && g->taps_y == 3 ? 3 : g->taps_y / 2 - 1][power];
        if (g->stride_y == 1 && g->taps_y >= TILE_ROWS - 1)
            return large[power];
    }
    *rows = ANY_TILE_ROWS(1 << power);
    if (height >= *rows)
        return any[power];
    *rows = 1;
    return single[power];
}

/* How many pieces the output rows of `images` images make: some for each thread, for an even load, of not too few rows, since these share what
   neighbours see; and where rows are copied, so many that a copy stays small. */
static ptrdiff_t NAME(pieces)(const Shape *g, ptrdiff_t threads, ptrdiff_t images)
{
    ptrdiff_t pieces = (PIECES_PER_THREAD * threads + images - 1) / images, rows;
    if (has_strips(g))
        return NAME(strip_pieces)(g, threads, images);
    if (pieces > g->out_height / MIN_PIECE_ROWS)
        pieces = g->out_height / MIN_PIECE_ROWS;
    if (is_copied(g)) {
        rows = MAX_COPY_BYTES / (g->channels * planes_of(g) * NAME(pitch)(g, g->out_width) * (ptrdiff_t)sizeof(REAL));
        rows = (rows - rows_seen(g, 1)) / g->stride_y;
        const ptrdiff_t minimum = is_multi_output(g) && REGISTERS == 16 ? g->taps_y : 2 * TILE_ROWS;
        rows = rows < minimum ? minimum : rows;
        if (pieces < (g->out_height + rows - 1) / rows)
            pieces = (g->out_height + rows - 1) / rows;
    }
    return pieces < 1 ? 1 : pieces;
}

/* Elements of work that `band` needs. */
static ptrdiff_t NAME(work)(const Shape *g, ptrdiff_t pieces)
{
    if (has_strips(g))
        return 0;
    const ptrdiff_t most = (g->out_height + pieces - 1) / pieces, copied = is_copied(g);
    const ptrdiff_t pitch = NAME(pitch)(g, copied ? g->out_width : 4 * LANES);
    const ptrdiff_t rows = g->channels * rows_seen(g, copied ? most : TILE_ROWS) * planes_of(g) * pitch;
    return rows + (uses_im2col(g, LANES) ? LANES + NAME(im2col_work)(g) : 0);
}

/* Output rows first to last - 1 of all output channels of one group of one image. Each pointer is at the group's first element.
   streamed: non-temporal stores write outputs of whole and aligned vectors. offsets: room for a number for each column of the kernel and, where
   it has several outputs at once, for each tap. */
static void NAME(band)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                       ptrdiff_t last, int streamed, ptrdiff_t *offsets, REAL *copy)
{
#ifdef MASK
    if (has_strips(g)) {
        NAME(strips)(g, input, weight, bias, output, first, last, streamed);
        return;
    }
#endif
    const int copied = is_copied(g);
    const ptrdiff_t columns = copied ? g->out_width : 4 * LANES, pitch = NAME(pitch)(g, columns), planes = planes_of(g);
    const ptrdiff_t seen = rows_seen(g, last - first), near = g->channels * g->width * seen * (ptrdiff_t)sizeof(REAL) < MAX_COPY_BYTES;
    for (ptrdiff_t s = 0; s < g->taps_x; s++)
        offsets[s] = s * g->dilation_x % g->stride_x * pitch + s * g->dilation_x / g->stride_x;
    if (copied)
        NAME(fill)(g, input, copy, first * g->stride_y - g->top, seen, -g->left, columns, pitch);
    if (uses_im2col(g, LANES) && (last - first) * g->out_width >= LANES) {
        NAME(im2col_rows)(g, copy, seen, planes * pitch, offsets, weight, bias, output, first, last, streamed,
                       copy + g->channels * seen * planes * pitch + LANES);
        return;
    }
    for (ptrdiff_t at = 0; at < g->out_width;) {
        const Cut cut = next_cut(g, at, LANES);
        int rows = 1;
        NAME(kernel) *kernel = is_multi_output(g) ? NULL : NAME(choose)(g, cut.power, last - first, &rows);
        at = cut.at + cut.tiles * (LANES << cut.power);
        for (ptrdiff_t p = first, bands; p < last; p += bands * rows) {
            if (p > last - rows)
                p = last - rows;
            const ptrdiff_t y = p * g->stride_y - g->top, x = cut.at - g->left;
            const int whole = !copied && cut.inside && y >= 0 && y + rows_seen(g, rows) <= g->height;
            /* As many bands at once as lie in the image, where their input stays near the core or is read once. */
            bands = 1;
            if (copied || (whole && (g->outputs == 1 || near))) {
                const ptrdiff_t below = copied ? last - p : (g->height - y - rows_seen(g, 1)) / g->stride_y + 1;
                bands = (below < last - p ? below : last - p) / rows;
            }
            const ptrdiff_t line = whole ? g->width : planes * pitch;
            const ptrdiff_t count = whole ? g->height : copied ? seen : rows_seen(g, rows);
            for (ptrdiff_t t = 0; t < (whole || copied ? 1 : cut.tiles); t++) {
                const ptrdiff_t column = cut.at + t * (LANES << cut.power);
                const Tiles tiles = {line * g->dilation_y, line * count, line * rows * g->stride_y, g->channels,
                                     g->taps_y, g->taps_x, whole || copied ? cut.tiles : 1, g->out_width - column, bands,
                                     g->out_width, offsets, streamed && g->out_width % LANES == 0 && column % LANES == 0};
                const REAL *from = whole    ? input + y * g->width + x
                                   : copied ? copy + (p - first) * g->stride_y * planes * pitch + cut.at
                                            : copy;
                if (!whole && !copied)
                    NAME(fill)(g, input, copy, y, count, column - g->left, LANES << cut.power, pitch);
                if (is_multi_output(g)) {
                    NAME(all_outputs)(g, cut.power, &tiles, offsets + g->taps_x, from, NULL, weight,
                                      g->channels * g->taps_y * g->taps_x, bias, output + p * g->out_width + column);
                    continue;
                }
                for (ptrdiff_t k = 0; k < g->outputs; k++)
                    kernel(&tiles, from, weight + k * g->channels * g->taps_y * g->taps_x, bias[k],
                           output + (k * g->out_height + p) * g->out_width + column);
            }
        }
    }
}
#endif
