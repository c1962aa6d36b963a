/* Winograd's F(4x4, 3x3), a vector of channels at a time: see cpu.cython_winograd. Lavin and Gray, arXiv 1509.09308; the points 0, 1, -1, 2,
   -2 and infinity. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_WINOGRAD
#define CONVBENCH_WINOGRAD

#include "_winograd_tiles.h"

#define MAX_TAPS 121 /* of a kernel, by the requirements of cpu.cython_winograd */

/* The transform of an input tile's six numbers along one axis. */
INLINE void NAME(forward6)(const V d[6], V t[6])
{
    const V four = NAME(splat)(4), five = NAME(splat)(5), two = NAME(splat)(2);
    const V even = d[4] - four * d[2], odd = d[3] - four * d[1], near = d[4] - d[2], far = two * (d[3] - d[1]);
    t[0] = four * d[0] + (d[4] - five * d[2]);
    t[1] = even + odd;
    t[2] = even - odd;
    t[3] = near + far;
    t[4] = near - far;
    t[5] = four * d[1] + (d[5] - five * d[3]);
}

/* The inverse transform of six products along one axis, to four outputs. */
INLINE void NAME(inverse6)(const V m[6], V y[4])
{
    const V sum = m[1] + m[2], difference = m[1] - m[2], far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = difference + NAME(splat)(2) * far_difference;
    y[2] = sum + NAME(splat)(4) * far_sum;
    y[3] = difference + NAME(splat)(8) * far_difference + m[5];
}

/* The transform of three weights along one axis. */
INLINE void NAME(weights3)(const V g[3], V t[6])
{
    const V sixth = NAME(splat)((REAL)1 / 6), small = NAME(splat)((REAL)1 / 24);
    const V ends = (g[0] + g[2]) * sixth, middle = g[1] * sixth, wide = g[0] * small + g[2] * sixth;
    const V half = g[1] * NAME(splat)((REAL)1 / 12);
    t[0] = g[0] * NAME(splat)((REAL)1 / 4);
    t[1] = -(ends + middle);
    t[2] = middle - ends;
    t[3] = wide + half;
    t[4] = wide - half;
    t[5] = g[2];
}

/* Transform the weights of one block of input channels and one vector of output channels, `outputs` of them at `weight`, into factors, of
   `blocks` blocks of channels from `first` on, where each piece of it belongs; whole: the kernel is one piece of 3x3. */
INLINE void NAME(transform_block)(const Shape *g, const Grouping *w, const REAL *weight, ptrdiff_t outputs, ptrdiff_t block,
                                  ptrdiff_t first, ptrdiff_t blocks, REAL *factors, const int whole)
{
    const ptrdiff_t taps_x = whole ? 3 : g->taps_x, window = whole ? 9 : g->taps_y * taps_x, pieces = whole ? 1 : w->pieces;
    const ptrdiff_t length = g->channels * window, far = FACTORS_STEP(pieces * blocks);
    V taps[(whole ? 9 : MAX_TAPS) * LANES]; /* of LANES channels, as vectors of output channels */
    _Pragma("GCC unroll 1") for (int part = 0; part < window; part++)
    {
        const ptrdiff_t at = (block * window + part) * LANES;
        V rows[LANES];
        _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++)
        {
            const REAL *from = weight + k * length + at;
            rows[k] = k < outputs ? NAME(load_some)(from, 0, length - at) : (V){0};
            __builtin_prefetch(from + window * LANES); /* more streams than the machine's own prefetcher follows */
        }
        NAME(transpose)(rows);
        _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) taps[part * LANES + i] = rows[i];
    }
    for (ptrdiff_t piece = 0; piece < pieces; piece++) {
        const ptrdiff_t height = whole ? 3 : taps_down(g, w, piece), width = whole ? 3 : taps_across(g, w, piece);
        const ptrdiff_t down = whole ? 3 : w->between_y * taps_x, across = whole ? 1 : w->between_x;
        const V *from = taps + (whole ? 0 : first_down(w, piece) * taps_x + first_across(w, piece));
        REAL *to = factors + (whole ? block - first : place_of(w, piece, block) - first * pieces) * LANES * PAIR;
        for (int c = 0; c < LANES; c++, from += window, to += PAIR) {
            V columns[3][6];
            _Pragma("GCC unroll 3") for (int s = 0; s < 3; s++)
            {
                V column[3];
                _Pragma("GCC unroll 3") for (int r = 0; r < 3; r++)
                    column[r] = r < height && s < width ? from[r * down + s * across] : (V){0};
                NAME(weights3)(column, columns[s]);
            }
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++)
            {
                const V row[3] = {columns[0][i], columns[1][i], columns[2][i]};
                V t[6];
                NAME(weights3)(row, t);
                _Pragma("GCC unroll 6") for (int j = 0; j < 6; j++) NAME(store)(to + (6 * i + j) * far, t[j]);
            }
        }
    }
}

/* Fill factors (36, pieces * blocks * LANES, PAIR) from the weights (K, C, R, S) of `outputs` output channels, at most PAIR, for `blocks` blocks
   of input channels from `first` on; zeros for channels beyond, but nothing for a vector of outputs that are all beyond. */
static void NAME(transform_weights)(const Shape *g, const Grouping *w, const REAL *weight, ptrdiff_t outputs, ptrdiff_t first,
                                    ptrdiff_t blocks, REAL *factors)
{
    const ptrdiff_t length = g->channels * g->taps_y * g->taps_x;
    for (int half = 0; half * LANES < outputs; half++)
        for (ptrdiff_t block = first; block < first + blocks; block++) {
            const REAL *from = weight + half * LANES * length;
            if (w->whole)
                NAME(transform_block)(g, w, from, outputs - half * LANES, block, first, blocks, factors + half * LANES, 1);
            else
                NAME(transform_block)(g, w, from, outputs - half * LANES, block, first, blocks, factors + half * LANES, 0);
        }
}

/* Transform one row of tiles, the row-th of those whose groups begin at `groups`, of LANES channels for one row of pieces, the read-th of
   w->reads. input: the first channel of the group of channels, of the image; y: the tiles' first input row, for the kernel's first piece. */
static void NAME(transform_tiles)(const Shape *g, const Grouping *w, const REAL *input, ptrdiff_t read, ptrdiff_t y, ptrdiff_t row,
                                  REAL *groups, REAL *lines)
{
    const ptrdiff_t pixels = g->height * g->width, pitch = LINE_AREA(g, w), far = TILES_AREA(w);
    const ptrdiff_t chunk = WINOGRAD_CHUNK_TILES / w->apart_x * w->apart_x;
    const ptrdiff_t block = read % w->deep, c = block * LANES, channels = g->channels - c < LANES ? g->channels - c : LANES;
    const ptrdiff_t begin = read / w->deep * w->across, end = begin + w->across;
    const ptrdiff_t every = g->stride_x < g->dilation_x ? g->stride_x : g->dilation_x; /* columns: nothing sees those between */
    const int rows_seen = w->tall >> begin & 1 ? 6 : 5;
    y += first_down(w, begin) * g->dilation_y;
    for (ptrdiff_t first = 0; first < w->tiles_x; first += chunk) {
        const ptrdiff_t tiles = w->tiles_x - first < chunk ? w->tiles_x - first : chunk, columns = tile_columns(g, w, tiles);
        const ptrdiff_t x = 4 * first * g->stride_x - g->left;
        for (int i = 0; i < rows_seen; i++) {
            REAL *line = lines + i * pitch;
            const ptrdiff_t at = y + i * w->step_y;
            const REAL *from = input + c * pixels + at * g->width + x;
            if (at < 0 || at >= g->height) {
                memset(line, 0, columns * LANES * sizeof(REAL));
                continue;
            }
            for (ptrdiff_t q = 0; q < columns; q += LANES) {
                V rows[LANES];
                if (channels == LANES && x + q >= 0 && x + q + LANES <= g->width)
                    _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) rows[c] = NAME(load)(from + c * pixels + q);
                else
                    for (int c = 0; c < LANES; c++)
                        rows[c] = c < channels ? NAME(load_some)(from + c * pixels + q, -x - q, g->width - x - q) : (V){0};
                NAME(transpose)(rows);
                _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) NAME(store)(line + (q + c) * LANES, rows[c]);
            }
        }
        for (ptrdiff_t q = 0; q < columns; q += every) {
            V d[6], t[6];
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++) d[i] = i < rows_seen ? NAME(load)(lines + i * pitch + q * LANES) : (V){0};
            NAME(forward6)(d, t);
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++) NAME(store)(lines + i * pitch + q * LANES, t[i]);
        }
        for (ptrdiff_t piece = begin; piece < end; piece++)
            for (ptrdiff_t tile = 0; tile < tiles; tile++) {
                const ptrdiff_t column = first + tile, group = row / w->rows * w->parts + column / w->size * (w->parts > 1);
                const ptrdiff_t place = w->parts > 1 ? column % w->size : row % w->rows * w->tiles_x + column;
                const ptrdiff_t seen = begin_of(tile, w->apart_x) * g->stride_x + first_across(w, piece) * g->dilation_x;
                REAL *to = groups + group * 36 * far + (place_of(w, piece, block) * w->size + place) * LANES;
                _Pragma("GCC unroll 1") for (int i = 0; i < rows_seen; i++)
                {
                    V d[6], t[6];
                    _Pragma("GCC unroll 6") for (int j = 0; j < 6; j++) d[j] = NAME(load)(lines + i * pitch + (seen + j * w->step_x) * LANES);
                    NAME(forward6)(d, t);
                    _Pragma("GCC unroll 6") for (int j = 0; j < 6; j++) NAME(store)(to + (6 * i + j) * far, t[j]);
                }
            }
    }
}

/* products (count, PAIR) = tiles (blocks, size, LANES) times factors (blocks * LANES, PAIR), all of it in registers; added to what is
   there where `more` says so. Of each PAIR outputs the first `vectors` vectors alone. */
INLINE void NAME(multiply)(const int count, const int vectors, ptrdiff_t size, ptrdiff_t blocks, const REAL *tiles,
                           const REAL *factors, REAL *products, int more)
{
    V sums[PRODUCT_ROWS][2];
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        _Pragma("GCC unroll 2") for (int half = 0; half < vectors; half++)
            sums[t][half] = more ? NAME(load)(products + t * PAIR + half * LANES) : (V){0};
    for (ptrdiff_t block = 0; block < blocks; block++, tiles += size * LANES)
        _Pragma("GCC unroll 2") for (int c = 0; c < LANES; c++, factors += PAIR)
        {
            V outputs[2];
            _Pragma("GCC unroll 2") for (int half = 0; half < vectors; half++) outputs[half] = NAME(load)(factors + half * LANES);
            _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
            {
                const V x = NAME(splat)(tiles[t * LANES + c]);
                _Pragma("GCC unroll 2") for (int half = 0; half < vectors; half++) sums[t][half] += x * outputs[half];
            }
        }
    _Pragma("GCC unroll 16") for (int t = 0; t < count; t++)
        _Pragma("GCC unroll 2") for (int half = 0; half < vectors; half++)
            NAME(store)(products + t * PAIR + half * LANES, sums[t][half]);
}

#define MULTIPLY(count, vectors)                                                                                       \
    static void NAME(multiply_##count##_by_##vectors)(ptrdiff_t size, ptrdiff_t blocks, const REAL *tiles,             \
                                                      const REAL *factors, REAL *products, int more)                   \
    {                                                                                                                  \
        NAME(multiply)(count, vectors, size, blocks, tiles, factors, products, more);                                  \
    }
#define MULTIPLY_BOTH(count) MULTIPLY(count, 1) MULTIPLY(count, 2)
MULTIPLY_BOTH(1) MULTIPLY_BOTH(2) MULTIPLY_BOTH(3) MULTIPLY_BOTH(4) MULTIPLY_BOTH(5) MULTIPLY_BOTH(6)
#if REGISTERS == 32
MULTIPLY_BOTH(7) MULTIPLY_BOTH(8) MULTIPLY_BOTH(9) MULTIPLY_BOTH(10) MULTIPLY_BOTH(11) MULTIPLY_BOTH(12) MULTIPLY_BOTH(13) MULTIPLY_BOTH(14)
#endif
#undef MULTIPLY_BOTH

typedef void (*NAME(Multiply))(ptrdiff_t, ptrdiff_t, const REAL *, const REAL *, REAL *, int);
static const NAME(Multiply) NAME(multiplies)[][2] = {
#define MULTIPLY_BOTH(count) [count] = {NAME(multiply_##count##_by_1), NAME(multiply_##count##_by_2)},
    MULTIPLY_BOTH(1) MULTIPLY_BOTH(2) MULTIPLY_BOTH(3) MULTIPLY_BOTH(4) MULTIPLY_BOTH(5) MULTIPLY_BOTH(6)
#if REGISTERS == 32
    MULTIPLY_BOTH(7) MULTIPLY_BOTH(8) MULTIPLY_BOTH(9) MULTIPLY_BOTH(10) MULTIPLY_BOTH(11) MULTIPLY_BOTH(12) MULTIPLY_BOTH(13) MULTIPLY_BOTH(14)
#endif
#undef MULTIPLY_BOTH
};

/* The i-th of the 36 products of a group, of `blocks` blocks of channels of each piece but those whose product is zero; tiles and factors
   at the first of them. first: the first block of the channels. */
INLINE void NAME(multiply_pieces)(const Grouping *w, NAME(Multiply) multiply, int i, ptrdiff_t first, ptrdiff_t blocks, const REAL *tiles,
                                  const REAL *factors, REAL *products)
{
    const ptrdiff_t all = ((ptrdiff_t)1 << w->pieces) - 1, there = (i / 6 < 5 ? all : w->tall) & (i % 6 < 5 ? all : w->broad);
    int more = first > 0;
    if (there == all) {
        multiply(w->size, blocks * w->pieces, tiles, factors, products, more);
        return;
    }
    for (ptrdiff_t block = first; block < first + blocks; block += w->depth)
        for (ptrdiff_t piece = 0, next; piece < w->pieces; piece = next) {
            const ptrdiff_t at = place_of(w, piece, block) - first * w->pieces;
            for (next = piece + 1; there >> piece & there >> next & 1 && next < w->pieces;) next++; /* these lie one after the other */
            if (!(there >> piece & 1))
                continue;
            multiply(w->size, place_of(w, next, block) - first * w->pieces - at, tiles + at * w->size * LANES,
                     factors + at * LANES * PAIR, products, more);
            more = 1;
        }
    if (!more)
        multiply(w->size, 0, tiles, factors, products, 0);
}

/* The outputs of `tiles` tiles side by side, from the products of the first of them on: bias and output at the first of `outputs`
   output channels, output at the tiles' first pixel, of which `height` rows and `width` columns are in the image. Returns whether
   one of them is no finite number: a transform spreads such a one over outputs that do not see it, and may overflow itself. */
static int NAME(transform_products)(const Shape *g, const Grouping *w, const REAL *products, ptrdiff_t tiles, ptrdiff_t outputs,
                                     ptrdiff_t height, ptrdiff_t width, const REAL *bias, REAL *output, REAL *wide)
{
    const ptrdiff_t far = w->size * PAIR, pitch = OUTPUT_ROW_AREA(w), pixels = g->out_height * g->out_width;
    V nothing = {0}; /* a sum of zeros, as long as all is finite */
    REAL sum = 0;
    for (int half = 0; half * LANES < outputs; half++) {
        const V start = NAME(load_some)(bias + half * LANES, 0, outputs - half * LANES);
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            const REAL *from = products + tile * PAIR + half * LANES;
            REAL *to = wide + begin_of(tile, w->apart_x) * LANES;
            V rows[6][4];
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++)
            {
                V m[6];
                _Pragma("GCC unroll 6") for (int j = 0; j < 6; j++) m[j] = NAME(load)(from + (6 * i + j) * far);
                NAME(inverse6)(m, rows[i]);
            }
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)
            {
                const V column[6] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j], rows[4][j], rows[5][j]};
                V y[4];
                NAME(inverse6)(column, y);
                _Pragma("GCC unroll 4") for (int i = 0; i < 4; i++)
                {
                    nothing += (y[i] + start) * NAME(splat)(0);
                    NAME(store)(to + i * pitch + j * w->apart_x * LANES, y[i] + start);
                }
            }
        }
        for (int i = 0; i < height; i++)
            for (ptrdiff_t q = 0; q < width; q += LANES) {
                REAL *to = output + half * LANES * pixels + i * w->apart_y * g->out_width + q;
                V rows[LANES];
                _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) rows[c] = NAME(load)(wide + i * pitch + (q + c) * LANES);
                NAME(transpose)(rows);
                if (width - q >= LANES && outputs - half * LANES >= LANES)
                    _Pragma("GCC unroll 16") for (int c = 0; c < LANES; c++) NAME(store)(to + c * pixels, rows[c]);
                else
                    for (int c = 0; c < LANES && half * LANES + c < outputs; c++)
                        NAME(store_first)(to + c * pixels, rows[c], width - q);
            }
    }
    for (int c = 0; c < LANES; c++) sum += nothing[c];
    return !(sum == 0);
}

/* The outputs of one group of `count` rows of tiles, from its products; the arguments and the result are those of `finish`. */
static int NAME(outputs_of)(const Shape *g, const Grouping *w, const REAL *products, ptrdiff_t group, ptrdiff_t row, ptrdiff_t rows,
                             ptrdiff_t tiles, ptrdiff_t outputs, const REAL *bias, REAL *output, ptrdiff_t image, REAL *wide)
{
    const ptrdiff_t column = group % w->parts * w->size;
    int nonfinite = 0;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t n = (row + r) / w->tiles_y, y = begin_of((row + r) % w->tiles_y, w->apart_y);
        const ptrdiff_t height = there_of(g->out_height - y, 4, w->apart_y);
        const ptrdiff_t width = g->out_width - 4 * column < 4 * tiles ? g->out_width - 4 * column : 4 * tiles;
        nonfinite |= NAME(transform_products)(g, w, products + r * w->tiles_x * PAIR, tiles, outputs, height, width, bias,
                                         output + n * image + y * g->out_width + 4 * column, wide);
    }
    return nonfinite;
}

/* The outputs of groups first to last - 1 of transformed tiles, of `outputs` output channels; row: the first of the tiles' rows,
   `count` of them, counted through the images. weight, bias and output are at the first of the channels, output of the first image,
   whose next one lies `image` elements on. packed: the weights transformed, or NULL: then they are here. Of few groups the products
   are held, so that a piece of the weights is used while it is in the cache. Returns whether an output is no finite number. */
static int NAME(finish)(const Shape *g, const Grouping *w, const REAL *groups, const REAL *weight, const REAL *packed,
                         ptrdiff_t first, ptrdiff_t last, ptrdiff_t row, ptrdiff_t count, ptrdiff_t outputs, const REAL *bias,
                         REAL *output, ptrdiff_t image, REAL *work)
{
    REAL *products = work + NAME(factors_area)(w), *wide = products + MAX_HELD_GROUPS * 36 * w->size * PAIR;
    const int few = !packed && last - first <= MAX_HELD_GROUPS;
    const ptrdiff_t depth = few && w->depth < w->deep ? w->depth : w->deep;
    int nonfinite = 0;
    for (ptrdiff_t block = 0; block < w->deep; block += depth) {
        const ptrdiff_t blocks = w->deep - block < depth ? w->deep - block : depth;
        const REAL *factors = packed ? packed : work;
        if (!packed)
            NAME(transform_weights)(g, w, weight, outputs, block, blocks, work);
        for (ptrdiff_t group = first; group < last; group++) {
            const ptrdiff_t begin = group / w->parts * w->rows, column = group % w->parts * w->size;
            const ptrdiff_t rows = count - begin < w->rows ? count - begin : w->rows;
            const ptrdiff_t tiles = w->parts == 1 ? w->tiles_x : w->tiles_x - column < w->size ? w->tiles_x - column : w->size;
            REAL *held = products + (few ? group - first : 0) * 36 * w->size * PAIR;
            for (int i = 0; i < 36; i++)
                NAME(multiply_pieces)(w, NAME(multiplies)[rows * tiles][outputs > LANES], i, block, blocks,
                                      groups + (group * 36 + i) * TILES_AREA(w) + block * w->pieces * w->size * LANES,
                                      factors + i * FACTORS_STEP(w->pieces * blocks), held + i * w->size * PAIR);
            if (block + blocks == w->deep)
                nonfinite |= NAME(outputs_of)(g, w, held, group, row + begin, rows, tiles, outputs, bias, output, image, wide);
        }
    }
    return nonfinite;
}

/* All of `count` rows of tiles from `row` on, by one thread: their tiles, then block after block of output channels. input and output
   are at the first image, of which next ones lie `in_image` and `image` elements on; packed: transformed weights, or NULL. Returns whether an
   output is no finite number. */
static int NAME(all)(const Shape *g, const Grouping *w, const REAL *input, ptrdiff_t in_image, const REAL *weight, const REAL *packed,
                      const REAL *bias, REAL *output, ptrdiff_t image, ptrdiff_t row, ptrdiff_t count, REAL *tiles, REAL *work)
{
    const ptrdiff_t groups = (count + w->rows - 1) / w->rows * w->parts;
    for (ptrdiff_t r = row; r < row + count; r++)
        for (ptrdiff_t read = 0; read < w->reads; read++)
            NAME(transform_tiles)(g, w, input + r / w->tiles_y * in_image, read, row_of(g, w, r % w->tiles_y), r - row, tiles, work);
    int nonfinite = 0;
    for (ptrdiff_t k = 0; k < g->outputs; k += PAIR) {
        const REAL *factors = packed ? packed + k / PAIR * NAME(factors_area)(w) : NULL;
        nonfinite |= NAME(finish)(g, w, tiles, weight + k * g->channels * g->taps_y * g->taps_x, factors, 0, groups, row, count,
                                  g->outputs - k < PAIR ? g->outputs - k : PAIR, bias + k, output + k * g->out_height * g->out_width,
                                  image, work);
    }
    return nonfinite;
}
#endif
