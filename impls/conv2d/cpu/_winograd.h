/* Winograd's F(4x4, 3x3) for one type of element, a vector of channels at a time: see cpu.cython_winograd, and _vectors.h for REAL
   and NAME. Lavin and Gray, arXiv 1509.09308; the points 0, 1, -1, 2, -2 and infinity. */

#ifndef CONVBENCH_WINOGRAD
#define CONVBENCH_WINOGRAD
#define PAIR (2 * LANES) /* output channels at a time */
#define CHUNK 16         /* tiles of a row that are transformed at a time */
#define FEW 4            /* groups of tiles whose products are all held ... */
#define DEPTH 8          /* ... while weights are transformed for so many blocks of input channels at a time */

/* How tiles go together. A group, of `size` tiles at most, is multiplied at once; it holds whole rows of tiles, `rows` of them, or
   one of `parts` pieces of a row. A tile's outputs, whose pixels lie `dilation` apart, lie `apart_y` rows and `apart_x` columns apart; between
   them lie those of other tiles, so that as many tiles side by side have whole neighbourhoods of outputs, as each piece of a row has. */
typedef struct {
    ptrdiff_t tiles_x, tiles_y, size, rows, parts, apart_y, apart_x;
    /* Larger kernels are cut into pieces of 3x3 taps, `across` of them side by side: each sees the image from another pixel on, and is summed
       like more input channels. blocks: of LANES channels, of all pieces; deep: of one. */
    ptrdiff_t blocks, deep, across;
} Grouping;

/* Tiles along an axis of `outputs` outputs, and the first output of the tile-th. */
static ptrdiff_t tiles_along(ptrdiff_t outputs, ptrdiff_t apart)
{
    const ptrdiff_t left = outputs % (4 * apart);
    return outputs / (4 * apart) * apart + (left < apart ? left : apart);
}
static ptrdiff_t begin_of(ptrdiff_t tile, ptrdiff_t apart) { return tile / apart * 4 * apart + tile % apart; }

/* The first input row that the row-th row of an image's tiles sees. */
static ptrdiff_t row_of(const Shape *g, const Grouping *w, ptrdiff_t row) { return begin_of(row, w->apart_y) * g->stride_y - g->top; }

/* Input columns that `tiles` tiles side by side see, the first of which begins a neighbourhood. */
static ptrdiff_t columns_seen(const Shape *g, const Grouping *w, ptrdiff_t tiles)
{
    return begin_of(tiles - 1, w->apart_x) * g->stride_x + 5 * g->dilation_x + 1;
}
#endif

/* Groups as even and as full as they can be, for all rows of tiles of `images` images. */
static Grouping NAME(grouping)(const Shape *g, ptrdiff_t images)
{
    const ptrdiff_t apart_y = g->dilation_y / g->stride_y, apart_x = g->dilation_x / g->stride_x;
    Grouping w = {.rows = 1, .parts = 1, .apart_y = apart_y, .apart_x = apart_x};
    w.deep = (g->channels + LANES - 1) / LANES;
    w.across = (g->taps_x + 2) / 3;
    w.blocks = w.deep * w.across * ((g->taps_y + 2) / 3);
    w.tiles_x = tiles_along(g->out_width, apart_x);
    w.tiles_y = tiles_along(g->out_height, apart_y);
    if (w.tiles_x > TILE) {
        const ptrdiff_t most = TILE / apart_x, neighbourhoods = (w.tiles_x + apart_x - 1) / apart_x;
        w.parts = (neighbourhoods + most - 1) / most;
        w.size = (neighbourhoods + w.parts - 1) / w.parts * apart_x;
        w.parts = (w.tiles_x + w.size - 1) / w.size;
    } else {
        const ptrdiff_t most = TILE / w.tiles_x, count = images * w.tiles_y, groups = (count + most - 1) / most;
        w.rows = (count + groups - 1) / groups;
        w.size = w.rows * w.tiles_x;
    }
    return w;
}

/* Elements of a group of transformed tiles: [36][blocks][size][LANES]. A vector more for each of the 36, since stores that lie a
   power of two apart would all fall into one set of the cache. */
#define AREA(w) ((w)->blocks * (w)->size * LANES + LANES)
static ptrdiff_t NAME(group_area)(const Grouping *w) { return 36 * AREA(w); }

/* Elements of transformed weights of PAIR output channels: [36][blocks * LANES][PAIR], and a vector more for the same reason. */
#define STEP(blocks) ((blocks) * LANES * PAIR + LANES)
static ptrdiff_t NAME(factors_area)(const Grouping *w) { return 36 * STEP(w->blocks); }

/* Elements of work a thread: transformed weights, then products and outputs, or lines of the image. */
#define LINE(g, w) ((columns_seen(g, w, CHUNK / (w)->apart_x * (w)->apart_x) + LANES) * LANES) /* of the image: what a chunk of tiles sees */
#define WIDE(w) ((4 * ((w)->size + (w)->apart_x) + LANES) * LANES) /* a row of a group's outputs */
static ptrdiff_t NAME(winograd_work)(const Shape *g, const Grouping *w)
{
    const ptrdiff_t out = FEW * 36 * w->size * PAIR + 4 * WIDE(w), in = 6 * LINE(g, w);
    return NAME(factors_area)(w) + (out > in ? out : in);
}

/* Six numbers along one axis of a tile, transformed; `step` vectors lie between them, `far` between the results. */
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

INLINE void NAME(backward6)(const V m[6], V y[4])
{
    const V sum = m[1] + m[2], difference = m[1] - m[2], far_sum = m[3] + m[4], far_difference = m[3] - m[4];
    y[0] = m[0] + sum + far_sum;
    y[1] = difference + NAME(splat)(2) * far_difference;
    y[2] = sum + NAME(splat)(4) * far_sum;
    y[3] = difference + NAME(splat)(8) * far_difference + m[5];
}

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

/* The taps of one piece of the kernel, of LANES channels of LANES outputs, as they lie where the kernel is 3x3: taps (LANES, LANES, 9), zeros for
   what is not there. weight: the first of `outputs` outputs. */
static void NAME(cut_out)(const Shape *g, const Grouping *w, const REAL *weight, ptrdiff_t outputs, ptrdiff_t block, REAL *taps)
{
    const ptrdiff_t piece = block / w->deep, c = block % w->deep * LANES, y = piece / w->across * 3, x = piece % w->across * 3;
    const ptrdiff_t channels = g->channels - c < LANES ? g->channels - c : LANES, window = g->taps_y * g->taps_x;
    const ptrdiff_t height = g->taps_y - y < 3 ? g->taps_y - y : 3, width = g->taps_x - x < 3 ? g->taps_x - x : 3;
    memset(taps, 0, LANES * LANES * 9 * sizeof(REAL));
    for (ptrdiff_t k = 0; k < LANES && k < outputs; k++)
        for (ptrdiff_t i = 0; i < channels; i++)
            for (ptrdiff_t r = 0; r < height; r++)
                for (ptrdiff_t s = 0; s < width; s++)
                    taps[(k * LANES + i) * 9 + r * 3 + s] = weight[(k * g->channels + c + i) * window + (y + r) * g->taps_x + x + s];
}

/* Fill factors (36, blocks * LANES, PAIR) from the weights (K, C, R, S) of `outputs` output channels, at most PAIR, for `blocks` blocks of
   input channels from `first` on; zeros for channels beyond, but nothing for a vector of outputs that are all beyond. */
static void NAME(transform_weights)(const Shape *g, const Grouping *w, const REAL *weight, ptrdiff_t outputs, ptrdiff_t first,
                                    ptrdiff_t blocks, REAL *factors)
{
    const ptrdiff_t length = g->channels * g->taps_y * g->taps_x, far = STEP(blocks);
    const int whole = w->blocks == w->deep;
    for (int half = 0; half * LANES < outputs; half++)
        for (ptrdiff_t block = first; block < first + blocks; block++) {
            V taps[9 * LANES]; /* of LANES channels, as vectors of output channels */
            REAL piece[9 * LANES * LANES];
            if (!whole)
                NAME(cut_out)(g, w, weight + half * LANES * length, outputs - half * LANES, block, piece);
            _Pragma("GCC unroll 1") for (int part = 0; part < 9; part++)
            {
                const ptrdiff_t at = block * 9 * LANES + part * LANES;
                V rows[LANES];
                _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++)
                {
                    const REAL *from = weight + (half * LANES + k) * length + at;
                    if (!whole) {
                        rows[k] = NAME(load)(piece + (k * 9 + part) * LANES);
                        continue;
                    }
                    rows[k] = half * LANES + k < outputs ? NAME(load_some)(from, 0, length - at) : (V){0};
                    __builtin_prefetch(from + 9 * LANES); /* more streams than the machine's own prefetcher follows */
                }
                NAME(transpose)(rows);
                _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) taps[part * LANES + i] = rows[i];
            }
            for (int c = 0; c < LANES; c++) {
                REAL *to = factors + ((block - first) * LANES + c) * PAIR + half * LANES;
                V columns[3][6];
                _Pragma("GCC unroll 3") for (int s = 0; s < 3; s++)
                {
                    const V column[3] = {taps[c * 9 + s], taps[c * 9 + 3 + s], taps[c * 9 + 6 + s]};
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

/* Transform one row of tiles, the row-th of those whose groups begin at `groups`, of the block-th LANES channels.
   input: the first channel of the group of channels, of the image; y: the tiles' first input row, for the kernel's first piece. */
static void NAME(transform_tiles)(const Shape *g, const Grouping *w, const REAL *input, ptrdiff_t block, ptrdiff_t y, ptrdiff_t row,
                                  REAL *groups, REAL *lines)
{
    const ptrdiff_t pixels = g->height * g->width, pitch = LINE(g, w), far = AREA(w), chunk = CHUNK / w->apart_x * w->apart_x;
    const ptrdiff_t piece = block / w->deep, c = block % w->deep * LANES, channels = g->channels - c < LANES ? g->channels - c : LANES;
    y += piece / w->across * 3 * g->dilation_y;
    for (ptrdiff_t first = 0; first < w->tiles_x; first += chunk) {
        const ptrdiff_t tiles = w->tiles_x - first < chunk ? w->tiles_x - first : chunk, columns = columns_seen(g, w, tiles);
        const ptrdiff_t x = 4 * first * g->stride_x - g->left + piece % w->across * 3 * g->dilation_x;
        for (int i = 0; i < 6; i++) {
            REAL *line = lines + i * pitch;
            const ptrdiff_t at = y + i * g->dilation_y;
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
        for (ptrdiff_t q = 0; q < columns; q++) {
            V d[6], t[6];
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++) d[i] = NAME(load)(lines + i * pitch + q * LANES);
            NAME(forward6)(d, t);
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++) NAME(store)(lines + i * pitch + q * LANES, t[i]);
        }
        for (ptrdiff_t tile = 0; tile < tiles; tile++) {
            const ptrdiff_t column = first + tile, group = row / w->rows * w->parts + column / w->size * (w->parts > 1);
            const ptrdiff_t place = w->parts > 1 ? column % w->size : row % w->rows * w->tiles_x + column;
            const REAL *begin = lines + begin_of(tile, w->apart_x) * g->stride_x * LANES;
            REAL *to = groups + group * 36 * far + (block * w->size + place) * LANES;
            _Pragma("GCC unroll 6") for (int i = 0; i < 6; i++)
            {
                V d[6], t[6];
                _Pragma("GCC unroll 6") for (int j = 0; j < 6; j++) d[j] = NAME(load)(begin + i * pitch + j * g->dilation_x * LANES);
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
    V sums[TILE][2];
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
#define BOTH(count) MULTIPLY(count, 1) MULTIPLY(count, 2)
BOTH(1) BOTH(2) BOTH(3) BOTH(4) BOTH(5) BOTH(6)
#if TILE == 14
BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14)
#endif
#undef BOTH

static void (*const NAME(multiplies)[][2])(ptrdiff_t, ptrdiff_t, const REAL *, const REAL *, REAL *, int) = {
#define BOTH(count) [count] = {NAME(multiply_##count##_by_1), NAME(multiply_##count##_by_2)},
    BOTH(1) BOTH(2) BOTH(3) BOTH(4) BOTH(5) BOTH(6)
#if TILE == 14
    BOTH(7) BOTH(8) BOTH(9) BOTH(10) BOTH(11) BOTH(12) BOTH(13) BOTH(14)
#endif
#undef BOTH
};

/* The outputs of `tiles` tiles side by side, from the products of the first of them on: bias and output at the first of `outputs`
   output channels, output at the tiles' first pixel, of which `height` rows and `width` columns are in the image. Returns whether
   one of them is no finite number: a transform spreads such a one over outputs that do not see it, and may overflow itself. */
static int NAME(transform_products)(const Shape *g, const Grouping *w, const REAL *products, ptrdiff_t tiles, ptrdiff_t outputs,
                                     ptrdiff_t height, ptrdiff_t width, const REAL *bias, REAL *output, REAL *wide)
{
    const ptrdiff_t far = w->size * PAIR, pitch = WIDE(w), pixels = g->out_height * g->out_width;
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
                NAME(backward6)(m, rows[i]);
            }
            _Pragma("GCC unroll 4") for (int j = 0; j < 4; j++)
            {
                const V column[6] = {rows[0][j], rows[1][j], rows[2][j], rows[3][j], rows[4][j], rows[5][j]};
                V y[4];
                NAME(backward6)(column, y);
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
    int lost = 0;
    for (ptrdiff_t r = 0; r < rows; r++) {
        const ptrdiff_t n = (row + r) / w->tiles_y, y = begin_of((row + r) % w->tiles_y, w->apart_y);
        const ptrdiff_t left = (g->out_height - y + w->apart_y - 1) / w->apart_y, height = left < 4 ? left : 4;
        const ptrdiff_t width = g->out_width - 4 * column < 4 * tiles ? g->out_width - 4 * column : 4 * tiles;
        lost |= NAME(transform_products)(g, w, products + r * w->tiles_x * PAIR, tiles, outputs, height, width, bias,
                                         output + n * image + y * g->out_width + 4 * column, wide);
    }
    return lost;
}

/* The outputs of groups first to last - 1 of transformed tiles, of `outputs` output channels; row: the first of the tiles' rows,
   `count` of them, counted through the images. weight, bias and output are at the first of the channels, output of the first image,
   whose next one lies `image` elements on. packed: the weights transformed, or NULL: then they are here. Of few groups the products
   are held, so that a piece of the weights is used while it is in the cache. Returns whether an output is no finite number. */
static int NAME(finish)(const Shape *g, const Grouping *w, const REAL *groups, const REAL *weight, const REAL *packed,
                         ptrdiff_t first, ptrdiff_t last, ptrdiff_t row, ptrdiff_t count, ptrdiff_t outputs, const REAL *bias,
                         REAL *output, ptrdiff_t image, REAL *work)
{
    REAL *products = work + NAME(factors_area)(w), *wide = products + FEW * 36 * w->size * PAIR;
    const int few = !packed && last - first <= FEW;
    const ptrdiff_t depth = few && DEPTH < w->blocks ? DEPTH : w->blocks;
    int lost = 0;
    for (ptrdiff_t block = 0; block < w->blocks; block += depth) {
        const ptrdiff_t blocks = w->blocks - block < depth ? w->blocks - block : depth;
        const REAL *factors = packed ? packed : work;
        if (!packed)
            NAME(transform_weights)(g, w, weight, outputs, block, blocks, work);
        for (ptrdiff_t group = first; group < last; group++) {
            const ptrdiff_t begin = group / w->parts * w->rows, column = group % w->parts * w->size;
            const ptrdiff_t rows = count - begin < w->rows ? count - begin : w->rows;
            const ptrdiff_t tiles = w->parts == 1 ? w->tiles_x : w->tiles_x - column < w->size ? w->tiles_x - column : w->size;
            REAL *held = products + (few ? group - first : 0) * 36 * w->size * PAIR;
            for (int i = 0; i < 36; i++)
                NAME(multiplies)[rows * tiles][outputs > LANES](
                    w->size, blocks, groups + (group * 36 + i) * AREA(w) + block * w->size * LANES, factors + i * STEP(blocks),
                    held + i * w->size * PAIR, block > 0);
            if (block + blocks == w->blocks)
                lost |= NAME(outputs_of)(g, w, held, group, row + begin, rows, tiles, outputs, bias, output, image, wide);
        }
    }
    return lost;
}

/* All of `count` rows of tiles from `row` on, by one thread: their tiles, then block after block of output channels. input and output
   are at the first image, of which next ones lie `in_image` and `image` elements on; packed: transformed weights, or NULL. Returns whether an
   output is no finite number. */
static int NAME(all)(const Shape *g, const Grouping *w, const REAL *input, ptrdiff_t in_image, const REAL *weight, const REAL *packed,
                      const REAL *bias, REAL *output, ptrdiff_t image, ptrdiff_t row, ptrdiff_t count, REAL *tiles, REAL *work)
{
    const ptrdiff_t groups = (count + w->rows - 1) / w->rows * w->parts;
    for (ptrdiff_t r = row; r < row + count; r++)
        for (ptrdiff_t block = 0; block < w->blocks; block++)
            NAME(transform_tiles)(g, w, input + r / w->tiles_y * in_image, block, row_of(g, w, r % w->tiles_y), r - row, tiles, work);
    int lost = 0;
    for (ptrdiff_t k = 0; k < g->outputs; k += PAIR)
        lost |= NAME(finish)(g, w, tiles, weight + k * g->channels * g->taps_y * g->taps_x, packed ? packed + k / PAIR * NAME(factors_area)(w) : NULL, 0,
                             groups, row, count, g->outputs - k < PAIR ? g->outputs - k : PAIR, bias + k,
                             output + k * g->out_height * g->out_width, image, work);
    return lost;
}
