/* Direct sums over packed weights, a vector of output channels at a time: see cpu.cython_packed. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_PACKED
#define CONVBENCH_PACKED

#include "_packed_plan.h"
#include "_vectors.h"

/* Output channels that a block's packed weights have room for. */
static ptrdiff_t NAME(width_of)(ptrdiff_t outputs) { return outputs > PAIR ? 3 * LANES : PAIR; }

/* Fill packed (taps, width_of(outputs)) from the weights (outputs, taps) of a block's output channels; zeros for channels beyond, but
   nothing in vectors that have none. Its length is a multiple of LANES taps. */
static void NAME(pack)(const REAL *weight, ptrdiff_t taps, ptrdiff_t outputs, REAL *packed)
{
    const int vectors = LANES > 8 ? 1 : 2; /* at a time: rows of more channels are more streams than the machine's own prefetcher follows */
    const ptrdiff_t width = NAME(width_of)(outputs);
    for (int begin = 0; begin * LANES < outputs; begin += vectors)
        for (ptrdiff_t at = 0; at < taps; at += LANES)
            for (int half = begin; half < begin + vectors && half * LANES < outputs; half++) {
                V rows[LANES];
                _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++)
                {
                    const REAL *row = weight + (half * LANES + k) * taps + at;
                    rows[k] = half * LANES + k < outputs ? NAME(load_some)(row, 0, taps - at) : (V){0};
                    __builtin_prefetch(row + WEIGHT_PREFETCH_ELEMENTS);
                }
                NAME(transpose)(rows);
                _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
                    NAME(store)(packed + (at + i) * width + half * LANES, rows[i]);
            }
}

#undef H
#undef HALF_OF
#undef WIDENED
#if VECTOR_SIZE == 64
/* Half a vector, which takes half the time where the machine works at half its vectors' width, and never longer. */
#define H NAME(half_vector)
typedef REAL H __attribute__((vector_size(VECTOR_SIZE / 2)));
typedef REAL NAME(loose_half) __attribute__((vector_size(VECTOR_SIZE / 2), aligned(SIZE), may_alias));
#if SIZE == 4
#define HALF_OF(x) ((H)_mm512_castps512_ps256((__m512)(x)))
#define WIDENED(x) ((V)_mm512_castps256_ps512((__m256)(x)))
#else
#define HALF_OF(x) ((H)_mm512_castpd512_pd256((__m512d)(x)))
#define WIDENED(x) ((V)_mm512_castpd256_pd512((__m256d)(x)))
#endif
#endif

/* Half vectors of output channels that hold so many: vectors that are not cut have two. */
static ptrdiff_t NAME(halves_of)(ptrdiff_t outputs)
{
#ifdef H
    return (outputs + LANES / 2 - 1) / (LANES / 2);
#else
    return 2 * ((outputs + LANES - 1) / LANES);
#endif
}

/* Sums of pixels: their vectors of output channels and, in half, what is left. */
typedef struct {
    V vectors[MAX_BLOCK_VECTORS > 2 ? 2 * PRODUCT_ROWS : PRODUCT_ROWS][MAX_BLOCK_VECTORS];
#ifdef H
    H half[PRODUCT_ROWS];
#endif
} NAME(Sums);

/* Add the taps of pixels(), whose arguments these are. With `sides` what the first and the last MAX_EDGE_OUTPUTS pixels see beyond the
   image is left out. */
INLINE void NAME(add_taps)(NAME(Sums) *sums, const int sides, const int halves, const int rows, const int columns, const ptrdiff_t stride,
                           ptrdiff_t jump, const REAL *input, ptrdiff_t column, ptrdiff_t width, const Tap *taps, ptrdiff_t runs,
                           ptrdiff_t length, ptrdiff_t step, const REAL *packed)
{
    const int count = rows * columns, whole = halves / 2, wide = whole > 2 ? 3 * LANES : PAIR; /* vectors, and channels packed */
    for (ptrdiff_t run = 0; run < runs; run++, taps += step, packed += step * wide) {
        const REAL *factors = packed;
        for (const Tap *tap = taps, *after = taps + length; tap < after; tap += TAPS_PER_ITERATION) {
            _Pragma("GCC unroll 2") for (int more = 0; more < TAPS_PER_ITERATION; more++, factors += wide)
            {
                if (more > 0 && tap + more == after)
                    break;
                const REAL *seen = input + tap[more].place;
                const ptrdiff_t first_seen = column + tap[more].column;
                /* What the piece to the right sees last: planes of many channels are more streams than the machine's own prefetcher
                   follows. */
                if (more == 0 || step == 1)
                    __builtin_prefetch(seen + (2 * columns - 1) * stride);
                V first = NAME(load)(factors), second = whole > 1 ? NAME(load)(factors + LANES) : first;
                KEEP(first); /* GCC would load it again for each of a few sums */
                KEEP(second);
                V third = whole > 2 ? NAME(load)(factors + PAIR) : first;
                KEEP(third);
#ifdef H
                const H half = halves % 2 > 0 ? (H)*(const NAME(loose_half) *)(factors + whole * LANES) : (H){0};
#endif
                _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
                {
                    if (sides && ((t < MAX_EDGE_OUTPUTS && first_seen < -t * stride) ||
                                  (t >= columns - MAX_EDGE_OUTPUTS && first_seen >= width - t * stride)))
                        continue; /* a branch, since it is always taken at the same taps: selecting zeros instead takes longer */
                    const REAL pixel = seen[t / columns * jump + t % columns * stride];
                    if (whole > 0)
                        sums->vectors[t][0] += NAME(splat)(pixel) * first;
                    if (whole > 1)
                        sums->vectors[t][1] += NAME(splat)(pixel) * second;
                    if (whole > 2)
                        sums->vectors[t][2] += NAME(splat)(pixel) * third;
#ifdef H
                    if (halves % 2 > 0)
                        sums->half[t] += (whole > 0 ? HALF_OF(NAME(splat)(pixel)) : pixel - (H){0}) * half;
#endif
                }
            }
        }
    }
}

/* `rows` rows of `columns` pixels of `halves` half vectors of output channels, all sums in registers. input: what the first tap of the
   first pixel sees; pixels lie `stride` elements apart, rows `jump`. Summed are `runs` runs of `length` taps, `step` taps from one to the
   next. The first `outputs` channels are stored, `far` elements apart, in each the pixels side by side. With `sides`, of one row, some pixels
   see what is beyond the image: the first tap of the first one sees column `column` of `width`. begun: the sums that are gone on with,
   or NULL where these begin with the bias. kept: where they are kept to be gone on with, or NULL where they are stored. Both (pixels,
   width_of(outputs)). Strides and sides have loops of their own and share the rest, whose transposes would take longest to compile. */
INLINE void NAME(pixels)(const int halves, const int rows, const int columns, int sides, ptrdiff_t stride, ptrdiff_t jump,
                         const REAL *input, ptrdiff_t column, ptrdiff_t width, const Tap *taps, ptrdiff_t runs, ptrdiff_t length,
                         ptrdiff_t step, const REAL *packed, const REAL *bias, REAL *output, ptrdiff_t outputs, ptrdiff_t far,
                         const REAL *begun, REAL *kept)
{
    const int count = rows * columns, whole = halves / 2, wide = whole > 2 ? 3 * LANES : PAIR; /* vectors, and channels packed */
    NAME(Sums) sums;
    const V low = NAME(load_some)(bias, 0, outputs), high = NAME(load_some)(bias + LANES, 0, outputs - LANES);
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
    {
        if (whole > 0)
            sums.vectors[t][0] = low;
        if (whole > 1)
            sums.vectors[t][1] = high;
        if (whole > 2)
            sums.vectors[t][2] = NAME(load_some)(bias + PAIR, 0, outputs - PAIR);
    }
#ifdef H
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++) if (halves % 2 > 0)
        sums.half[t] = HALF_OF(whole > 0 ? high : low);
#endif
    if (begun != NULL)
        _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        {
            _Pragma("GCC unroll 3") for (int i = 0; i < whole; i++)
                sums.vectors[t][i] = NAME(load)(begun + t * wide + i * LANES);
#ifdef H
            if (halves % 2 > 0)
                sums.half[t] = (H)*(const NAME(loose_half) *)(begun + t * wide + whole * LANES);
#endif
        }
#define ADD_TAPS(sides, stride)                                                                                        \
    NAME(add_taps)                                                                                                     \
    (&sums, sides, halves, rows, columns, stride, jump, input, column, width, taps, runs, length, step, packed)
    if (sides && rows == 1) {
        if (stride == 1)
            ADD_TAPS(1, 1);
        else if (stride == 2)
            ADD_TAPS(1, 2);
        else
            ADD_TAPS(1, stride);
    } else if (stride == 1)
        ADD_TAPS(0, 1);
    else if (stride == 2)
        ADD_TAPS(0, 2);
    else
        ADD_TAPS(0, stride);
#undef ADD_TAPS
    if (kept != NULL) {
        _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        {
            _Pragma("GCC unroll 3") for (int i = 0; i < whole; i++)
                NAME(store)(kept + t * wide + i * LANES, sums.vectors[t][i]);
#ifdef H
            if (halves % 2 > 0)
                *(NAME(loose_half) *)(kept + t * wide + whole * LANES) = (NAME(loose_half))sums.half[t];
#endif
        }
        return;
    }
    _Pragma("GCC unroll 3") for (int vector = 0; 2 * vector < halves; vector++)
        _Pragma("GCC unroll 16") for (int at = 0; at < count; at += LANES)
        {
            V block[LANES];
            _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++)
            {
#ifdef H
                if (vector == whole)
                    block[i] = at + i < count ? WIDENED(sums.half[at + i]) : (V){0};
                else
#endif
                    block[i] = at + i < count ? sums.vectors[at + i][vector] : (V){0};
            }
            NAME(transpose)(block);
            _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) if (vector * LANES + k < outputs)
                NAME(store_first)(output + (vector * LANES + k) * far + at, block[k], count - at);
        }
}

#define PIXELS_ARGUMENTS                                                                                                   \
    int sides, ptrdiff_t stride, ptrdiff_t jump, const REAL *input, ptrdiff_t column, ptrdiff_t width, const Tap *taps,    \
        ptrdiff_t runs, ptrdiff_t length, ptrdiff_t step, const REAL *packed, const REAL *bias, REAL *output,              \
        ptrdiff_t outputs, ptrdiff_t far, const REAL *begun, REAL *kept
#define PIXELS(halves, rows, columns)                                                                                      \
    static void NAME(pixels_##halves##_##rows##_##columns)(PIXELS_ARGUMENTS)                                               \
    {                                                                                                                      \
        NAME(pixels)(halves, rows, columns, sides, stride, jump, input, column, width, taps, runs, length, step, packed,   \
                     bias, output, outputs, far, begun, kept);                                                             \
    }
#define UP_TO_3(f, halves, rows) f(halves, rows, 1) f(halves, rows, 2) f(halves, rows, 3)
#define UP_TO_6(f, halves, rows) UP_TO_3(f, halves, rows) f(halves, rows, 4) f(halves, rows, 5) f(halves, rows, 6)
#define UP_TO_7(f, halves, rows) UP_TO_6(f, halves, rows) f(halves, rows, 7)
#define UP_TO_14(f, halves, rows)                                                                                      \
    UP_TO_7(f, halves, rows) f(halves, rows, 8) f(halves, rows, 9) f(halves, rows, 10) f(halves, rows, 11)             \
        f(halves, rows, 12) f(halves, rows, 13) f(halves, rows, 14)
#if REGISTERS == 32
#define ONE_ROW UP_TO_14
#define TWO_ROWS UP_TO_7
#else
#define ONE_ROW UP_TO_6
#define TWO_ROWS UP_TO_3
#define UP_TO_12(f, halves, rows)                                                                                              \
    UP_TO_6(f, halves, rows) f(halves, rows, 7) f(halves, rows, 8) f(halves, rows, 9) f(halves, rows, 10) f(halves, rows, 11)  \
        f(halves, rows, 12)
#define UP_TO_4(f, halves, rows) UP_TO_3(f, halves, rows) f(halves, rows, 4)
#define UP_TO_2(f, halves, rows) f(halves, rows, 1) f(halves, rows, 2)
#endif
#define ENTRY(halves, rows, columns) NAME(pixels_##halves##_##rows##_##columns),
#define KERNELS(halves, one, two) one(PIXELS, halves, 1) two(PIXELS, halves, 2)
#define ENTRIES(halves, one, two) {{NULL, one(ENTRY, halves, 1)}, {NULL, two(ENTRY, halves, 2)}}
#if MAX_BLOCK_VECTORS > 2
#define ONE_ROW_OF_2 UP_TO_12
KERNELS(6, UP_TO_4, UP_TO_2)
#else
#define ONE_ROW_OF_2 ONE_ROW
#endif
KERNELS(2, ONE_ROW_OF_2, TWO_ROWS)
KERNELS(4, ONE_ROW, TWO_ROWS)
#ifdef H
KERNELS(1, ONE_ROW, TWO_ROWS)
KERNELS(3, ONE_ROW, TWO_ROWS)
#endif
static void (*const NAME(pixels_of)[2 * MAX_BLOCK_VECTORS + 1][2][(MAX_BLOCK_VECTORS > 2 ? 2 : 1) * PRODUCT_ROWS + 1])(PIXELS_ARGUMENTS) = {
#ifdef H
    [1] = ENTRIES(1, ONE_ROW, TWO_ROWS),
    [3] = ENTRIES(3, ONE_ROW, TWO_ROWS),
#endif
    [2] = ENTRIES(2, ONE_ROW_OF_2, TWO_ROWS),
    [4] = ENTRIES(4, ONE_ROW, TWO_ROWS),
#if MAX_BLOCK_VECTORS > 2
    [6] = ENTRIES(6, UP_TO_4, UP_TO_2),
#endif
};
#undef PIXELS_ARGUMENTS

/* The outputs of a place, of `outputs` output channels, summed over `channels` channels from channel c on.
   input: the first image, padded where the plan says so, whose next image lies `image` elements on; output: likewise, at the first of the
   output channels. Rows of taps that see nothing but padding are left out. begun, kept: as pixels() has them. */
static void NAME(piece)(const Shape *g, const Plan *plan, const REAL *input, ptrdiff_t image, const Tap *taps, const REAL *packed,
                        const REAL *bias, REAL *output, ptrdiff_t out_image, ptrdiff_t outputs, const Place *at, ptrdiff_t c,
                        ptrdiff_t channels, const REAL *begun, REAL *kept)
{
    const ptrdiff_t p = at->p, rows = at->rows, q = at->q, columns = at->end - q, far = g->out_height * g->out_width;
    const ptrdiff_t pitch = plan->width, step = g->taps_y * g->taps_x;
    const ptrdiff_t halves = NAME(halves_of)(outputs); /* channels that do not exist would take as long as those that do */
    /* From the first row of the image to the first tap's row of the lowest outputs, and on from that of the highest to the end. */
    const ptrdiff_t above = g->top - (p + rows - 1) * g->stride_y, below = g->height - 1 + g->top - p * g->stride_y;
    ptrdiff_t begin = 0, end = g->taps_y, runs = 1, length = channels * step;
    if (above > 0)
        begin = (above + g->dilation_y - 1) / g->dilation_y;
    if (below < (g->taps_y - 1) * g->dilation_y)
        end = below < 0 ? 0 : below / g->dilation_y + 1;
    if (begin > 0 || end < g->taps_y) {
        runs = begin < end ? channels : 0;
        length = (end - begin) * g->taps_x;
    }
    const ptrdiff_t row = p * g->stride_y - (plan->sides ? g->top : 0), column = q * g->stride_x - (plan->sides ? g->left : 0);
    const ptrdiff_t after = column + (columns - 1) * g->stride_x + (g->taps_x - 1) * g->dilation_x;
    const int sides = plan->sides && (column < 0 || after >= g->width);
    const ptrdiff_t place = plan->tiled ? at->part * tile_of(g) + at->on : row * pitch + column, tap = c * step + begin * g->taps_x;
    NAME(pixels_of)[halves][rows - 1][columns](sides, g->stride_x, g->stride_y * pitch, input + at->n * image + place, column, g->width,
                                               taps + tap, runs, length, step, packed + tap * NAME(width_of)(outputs), bias,
                                               output + at->n * out_image + p * g->out_width + q, outputs, far, begun, kept);
}

/* Bytes of a channel's packed weights and of the pixels that so many pieces together see of it, where these are not near anyway. */
static ptrdiff_t NAME(channel_of)(const Shape *g, const Plan *plan, ptrdiff_t outputs)
{
    const ptrdiff_t taps = g->taps_y * g->taps_x, plane = plan->height * plan->width;
    const ptrdiff_t rows = (PIECES_PER_TURN / parts(g) + 1) * together(g) * g->stride_y + (g->taps_y - 1) * g->dilation_y;
    const ptrdiff_t seen = g->out_height == 1 ? PIECES_PER_TURN * PRODUCT_ROWS * g->stride_x : rows * plan->width;
    const int near = plan->tiled || (taps == 1 && !plan->copied);
    return (taps * NAME(width_of)(outputs) + (near ? 0 : seen < plane ? seen : plane)) * SIZE;
}

/* Pieces first to last - 1. Those of a row are one, and cut anew, where registers hold more or less of one than of a piece. */
static void NAME(pieces)(const Shape *g, const Plan *plan, const REAL *input, ptrdiff_t image, const Tap *taps, const REAL *packed,
                         const REAL *bias, REAL *output, ptrdiff_t out_image, ptrdiff_t outputs, ptrdiff_t first, ptrdiff_t last)
{
    REAL sums[PIECES_PER_TURN * PRODUCT_ROWS * MAX_BLOCK_VECTORS * LANES];
    const ptrdiff_t bytes = NAME(channel_of)(g, plan, outputs), most = max_pixels((outputs + LANES - 1) / LANES);
    ptrdiff_t share = g->channels; /* summed one after the other */
    if (g->channels * bytes > MAX_TURN_BYTES && last - first > 1)
        share = bytes < MAX_TURN_BYTES / 2 ? MAX_TURN_BYTES / 2 / bytes : 1;
    Place at = place_of(g, first);
    for (ptrdiff_t begin = first, after; begin < last; begin = after) {
        const Place start = at;
        after = last - begin < PIECES_PER_TURN ? last : begin + PIECES_PER_TURN;
        for (ptrdiff_t c = 0; c < g->channels; c += share) {
            const ptrdiff_t left = g->channels - c;
            const ptrdiff_t channels = left < share ? left : share;
            REAL *kept = sums;
            at = start;
            if (most == PRODUCT_ROWS) { /* below, though nothing would be cut, small 1x1 layers took up to a tenth longer */
                for (ptrdiff_t i = begin; i < after; i++, kept += PRODUCT_ROWS * PAIR, at = next_place(g, at))
                    NAME(piece)(g, plan, input, image, taps, packed, bias, output, out_image, outputs, &at, c, channels,
                                c > 0 ? kept : NULL, left > share ? kept : NULL);
                continue;
            }
            for (ptrdiff_t i = begin; i < after;) {
                Place one = at, rest;
                for (i++, at = next_place(g, at); !plan->tiled && i < after && at.part > 0; i++, at = next_place(g, at))
                    one.end = at.end;
                for (int more = 1; more; one = rest) {
                    more = cut(&one, &rest, most);
                    NAME(piece)(g, plan, input, image, taps, packed, bias, output, out_image, outputs, &one, c, channels,
                                c > 0 ? kept : NULL, left > share ? kept : NULL);
                    kept += one.rows * (one.end - one.q) * NAME(width_of)(outputs);
                }
            }
        }
    }
}

/* Rows first to last - 1 of one plane of an image with its padding, `width` columns of every step_y-th row and step_x-th column. */
static void NAME(pad)(const Shape *g, const REAL *input, REAL *padded, ptrdiff_t width, ptrdiff_t first, ptrdiff_t last,
                      ptrdiff_t step_y, ptrdiff_t step_x)
{
    const ptrdiff_t ends = (g->left + g->width + step_x - 1) / step_x; /* where the image does */
    const ptrdiff_t left = (g->left + step_x - 1) / step_x < width ? (g->left + step_x - 1) / step_x : width;
    const ptrdiff_t right = ends < width ? ends : width;
    for (ptrdiff_t y = first; y < last; y++) {
        const ptrdiff_t row = y * step_y - g->top;
        REAL *to = padded + y * width;
        if (row < 0 || row >= g->height || left >= right) {
            memset(to, 0, width * sizeof(REAL));
            continue;
        }
        const REAL *from = input + row * g->width - g->left;
        if (step_x == 1 && width <= MAX_SHORT_ROW_VECTORS * LANES) {
            for (ptrdiff_t x = 0; x < width; x += LANES)
                NAME(store_first)(to + x, NAME(load_some)(from + x, left - x, right - x), width - x);
            continue;
        }
        memset(to, 0, left * sizeof(REAL));
        if (step_x == 1)
            memcpy(to + left, from + left, (right - left) * sizeof(REAL));
        else
            for (ptrdiff_t x = left; x < right; x++)
                to[x] = from[x * step_x];
        memset(to + right, 0, (width - right) * sizeof(REAL));
    }
}

/* Pieces first to last - 1 of an image, of one row, as tiles. */
static void NAME(tile)(const Shape *g, const REAL *input, REAL *tiles, ptrdiff_t first, ptrdiff_t last)
{
    const ptrdiff_t across = parts(g), size = tile_of(g);
    for (ptrdiff_t begin = first; begin < last; begin += TILED_CHUNK_PIECES) {
        const ptrdiff_t end = begin + TILED_CHUNK_PIECES < last ? begin + TILED_CHUNK_PIECES : last;
        ptrdiff_t from[TILED_CHUNK_PIECES]; /* where pieces begin */
        for (ptrdiff_t part = begin; part < end; part++)
            from[part - begin] = g->out_width * part / across;
        const int inside = from[end - 1 - begin] + TILED_PITCH_ELEMENTS <= g->width;
        const ptrdiff_t after = from[end - 1 - begin] + PRODUCT_ROWS + CACHE_LINE_BYTES / SIZE; /* of their last pixel's line */
        for (ptrdiff_t c = 0; c < g->channels; c++) {
            const REAL *row = input + c * g->width;
            for (ptrdiff_t x = from[0]; c + TILED_PREFETCH_CHANNELS < g->channels && x < after; x += CACHE_LINE_BYTES / SIZE)
                __builtin_prefetch(row + TILED_PREFETCH_CHANNELS * g->width + x);
            REAL *to = tiles + begin * size + c * TILED_PITCH_ELEMENTS;
            for (ptrdiff_t i = 0; i < end - begin; i++)
                for (ptrdiff_t x = 0; x < TILED_PITCH_ELEMENTS; x += LANES)
                    NAME(store)(to + i * size + x, inside ? NAME(load)(row + from[i] + x)
                                                          : NAME(load_some)(row + from[i] + x, 0, g->width - from[i] - x));
        }
    }
}
#endif
