/* Tiles of several output channels whose pixels are copied tap by tap, for one type of element: all that one tile of outputs sees, side by
   side, which all outputs then read. As they lie, a channel's pixels are a page or more away from the next one's, and rows that are no
   multiple of a vector leave lanes empty. See cpu.cython_direct, and _several.h for the sums. */

#ifndef CONVBENCH_LAID
#define CONVBENCH_LAID
#define LAID (192 << 10)  /* bytes of tiles, which should stay near the core while all outputs read them */
/* Bytes of a batch that a core's own caches do not keep; pixels of what they keep are not asked for before they are read. */
#define AFAR (TILE == 6 ? 256 << 10 : 768 << 10)
#define LAID_TAPS 384     /* of a tile: a core's nearest cache has room for them */
#define FEWEST_TAPS (TILE == 6 ? 40 : 20) /* for which rows that are copied are laid out, */
#define FEWEST_OUTPUTS 20                 /* and outputs, with 16 registers */
#define COPIED_OUTPUTS 14                 /* whose sums, with 32, take as long as copying what they see */
#define AHEAD_CHANNELS 96                 /* over which the pixels that are asked for are those of further channels, */
#define NEXT_CHANNELS 8                   /* so many on; of fewer they are so far ahead that their sums take about as long as memory */
#define PAGE 4096                         /* bytes: channels so far apart, or several times so far, take each other's place in all caches */
#define FAR_PLANE 12288                   /* numbers of a channel over which such images, a multiple of four cache lines apart, come slower */

static int comes_slower(const Shape *g) { return g->height * g->width > FAR_PLANE && g->height * g->width % 64 == 0; }

/* How far ahead of a pixel the line is asked for in which a vector of a later channel ends: with the tile before came the one in which it begins. */
static ptrdiff_t next_channels(const Shape *g, ptrdiff_t lanes) { return NEXT_CHANNELS * g->height * g->width + lanes - 1; }

/* How far ahead of a tile that is read pixels are asked for. */
static ptrdiff_t asked_ahead(const Shape *g, ptrdiff_t tile, ptrdiff_t lanes)
{
    if (TILE == 6)
        return 2 * tile;
    return g->channels > AHEAD_CHANNELS ? next_channels(g, lanes) : (2 + AHEAD_CHANNELS / g->channels) * tile;
}

/* Whether each output sees one pixel of each channel, so that an image is one long row of tiles; of a vector at least. */
static int has_one_tap(const Shape *g, ptrdiff_t lanes)
{
    return g->outputs > 2 && g->taps_y == 1 && g->taps_x == 1 && g->top == 0 && g->left == 0 && g->out_height * g->out_width >= lanes &&
           (g->out_height - 1) * g->stride_y < g->height && (g->out_width - 1) * g->stride_x < g->width;
}

/* Whether tiles are laid out from rows that are copied: where more lanes of rows are empty than it takes to copy each pixel once more for
   every tap. */
static int is_laid(const Shape *g, ptrdiff_t lanes)
{
    const ptrdiff_t taps = g->channels * g->taps_y * g->taps_x, vectors = (g->out_width + lanes - 1) / lanes;
    if (!is_copied(g) || taps < FEWEST_TAPS || g->outputs <= 2)
        return 0;
    if (TILE == 6)
        return g->outputs >= FEWEST_OUTPUTS;
    /* In tenths, a vector that is alone in its tile one fifth more. */
    return g->outputs * lanes * (10 * vectors + 2 * (vectors % 2)) > 10 * g->out_width * (g->outputs + COPIED_OUTPUTS);
}

/* How many channels are laid out at once, evenly many each time. */
static ptrdiff_t laid_channels(const Shape *g)
{
    const ptrdiff_t times = (g->channels * g->taps_y * g->taps_x + LAID_TAPS - 1) / LAID_TAPS;
    return (g->channels + times - 1) / times;
}

/* The same where an image is one long row: all of them with 32 registers, for whose twelve outputs fewer are no faster. */
static ptrdiff_t one_tap_channels(const Shape *g) { return TILE == 6 ? laid_channels(g) : g->channels; }

/* `count` tiles of `tile` outputs, 1 << power vectors, from pixel `at` on, and the pixel after them. */
typedef struct {
    ptrdiff_t at, tile, count, after;
    int power;
} Laid;

/* The next tiles of pixels at to last - 1, `last` a vector at least: as wide as there can be, up to 1 << widest vectors, and `most` of them. */
static Laid next_laid(ptrdiff_t at, ptrdiff_t last, ptrdiff_t most, ptrdiff_t lanes, int widest)
{
    const ptrdiff_t left = last - at;
    const int power = left > lanes && last >= lanes << widest ? widest : 0;
    const ptrdiff_t tile = lanes << power, whole = left / tile;
    if (whole == 0) /* the last tile begins with outputs of the one before */
        return (Laid){last - tile, tile, 1, last, power};
    const ptrdiff_t count = whole < most ? whole : most;
    return (Laid){at, tile, count, at + count * tile, power};
}
#endif

static int NAME(is_paged)(const Shape *g) { return g->height * g->width * sizeof(REAL) % PAGE == 0; }

/* All outputs of tiles of `taps` taps; places, input, copies, row, bias: as all_outputs has them; output: where the tiles' first pixel
   belongs, streams: past the caches; afar: the input is more than AFAR. */
static void NAME(sum_laid)(const Shape *g, Laid tiles, ptrdiff_t taps, ptrdiff_t *places, const REAL *input, REAL *copies,
                           const REAL *weight, ptrdiff_t row, const REAL *bias, REAL *output, int streams, int afar)
{
    static const ptrdiff_t nowhere = 0;
    /* Without other outputs nobody reads the copies again, and they need no more room than one tile's, in the nearest cache. */
    const ptrdiff_t plane = g->height * g->width, step = input != NULL && g->outputs <= MOST_OUTPUTS ? 0 : taps * tiles.tile;
    const ptrdiff_t ahead = !afar ? 0 : comes_slower(g) && !NAME(is_paged)(g) ? 2 * tiles.tile : asked_ahead(g, tiles.tile, LANES);
    const Tiles given = {0, plane, step, taps, 1, 1, 1, tiles.tile, tiles.count, tiles.tile, &nowhere, streams, ahead};
    NAME(all_outputs)(g, tiles.power, &given, places, input, copies, weight, row, bias, output);
}

/* Whether vectors from that pixel of every output channel on are aligned, as the output is. */
static int NAME(is_aligned)(const Shape *g, ptrdiff_t pixel) { return g->out_height * g->out_width % LANES == 0 && pixel % LANES == 0; }

/* Elements of one tile, and how many tiles are laid out at once. */
static ptrdiff_t NAME(laid_size)(const Shape *g) { return laid_channels(g) * g->taps_y * g->taps_x * (LANES << POWER); }

static ptrdiff_t NAME(laid_tiles)(const Shape *g)
{
    const ptrdiff_t tiles = LAID / (NAME(laid_size)(g) * (ptrdiff_t)sizeof(REAL));
    return tiles < 1 ? 1 : tiles;
}

/* Elements of work that laid_out needs; what is copied may end a vector behind the last tile. */
static ptrdiff_t NAME(laid_work)(const Shape *g) { return NAME(laid_tiles)(g) * NAME(laid_size)(g) + LANES; }

/* The pieces of rows, a vector at most, that `tile` outputs from pixel `pixel` on are; how many. at: where each begins in the tile, and
   where the last ends; from: where what it sees does, in rows of `line` elements in which neighbours see what is `step` apart. */
static int NAME(row_pieces)(const Shape *g, ptrdiff_t pixel, ptrdiff_t tile, ptrdiff_t line, ptrdiff_t step, ptrdiff_t *at, ptrdiff_t *from)
{
    int pieces = 0;
    for (ptrdiff_t p = 0; p < tile; pieces++) {
        const ptrdiff_t x = (pixel + p) % g->out_width, left = g->out_width - x;
        at[pieces] = p;
        from[pieces] = (pixel + p) / g->out_width * g->stride_y * line + x * step;
        p += left < LANES ? left : LANES;
    }
    at[pieces] = tile;
    return pieces;
}

/* A tile of outputs from pixel `pixel` on: channels first to last - 1 of what they see. copy: of `seen` rows of `line` elements of each
   channel, and a vector behind; to: a vector of it may be written behind the tile. */
static void NAME(lay_tile)(const Shape *g, const REAL *copy, ptrdiff_t seen, ptrdiff_t line, const ptrdiff_t *offsets, ptrdiff_t pixel,
                           ptrdiff_t tile, ptrdiff_t first, ptrdiff_t last, REAL *to)
{
    /* Each piece behind the one before: what a vector holds beyond it the next store overwrites. */
    ptrdiff_t at[(LANES << POWER) + 1], from[LANES << POWER];
    const int pieces = NAME(row_pieces)(g, pixel, tile, line, 1, at, from);
    for (ptrdiff_t c = first; c < last; c++)
        for (ptrdiff_t r = 0; r < g->taps_y; r++)
            for (ptrdiff_t s = 0; s < g->taps_x; s++, to += tile) {
                const REAL *begin = copy + (c * seen + r * g->dilation_y) * line + offsets[s];
                if (pieces == 2) { /* most have so few, and need no loop */
                    NAME(store)(to + at[0], NAME(load)(begin + from[0]));
                    NAME(store)(to + at[1], NAME(load)(begin + from[1]));
                } else
                    for (int i = 0; i < pieces; i++)
                        NAME(store)(to + at[i], NAME(load)(begin + from[i]));
            }
}

/* Output rows first to last - 1, of a vector's pixels at least, from their copy: the tiles go on from row to row. The other arguments as
   band() has them. */
static void NAME(laid_out)(const Shape *g, const REAL *copy, ptrdiff_t seen, ptrdiff_t line, const ptrdiff_t *offsets, const REAL *weight,
                           const REAL *bias, REAL *output, ptrdiff_t first, ptrdiff_t last, int past, REAL *work)
{
    const ptrdiff_t window = g->taps_y * g->taps_x, most = NAME(laid_tiles)(g), some = laid_channels(g);
    const ptrdiff_t begin = first * g->out_width, pixels = (last - first) * g->out_width;
    for (ptrdiff_t at = 0; at < pixels;) {
        const Laid tiles = next_laid(at, pixels, most, LANES, POWER);
        const int streams = past && some == g->channels && NAME(is_aligned)(g, begin + tiles.at);
        for (ptrdiff_t c = 0; c < g->channels; c += some) {
            const ptrdiff_t end = c + some < g->channels ? c + some : g->channels, taps = (end - c) * window;
            for (ptrdiff_t t = 0; t < tiles.count; t++)
                NAME(lay_tile)(g, copy, seen, line, offsets, tiles.at + t * tiles.tile, tiles.tile, c, end, work + t * taps * tiles.tile);
            NAME(sum_laid)(g, tiles, taps, NULL, NULL, work, weight + c * window, g->channels * window, c ? NULL : bias, output + begin + tiles.at, streams, 0);
        }
        at = tiles.after;
    }
}

/* Copies of the pixels that tiles of a 1x1 layer see of `channels` channels, each tile's of a channel side by side. */
static void NAME(lay_pixels)(const Shape *g, const REAL *input, ptrdiff_t channels, Laid tiles, REAL *copies)
{
    const ptrdiff_t plane = g->height * g->width, tile = tiles.tile, stride = g->stride_x;
    for (ptrdiff_t t = 0; t < tiles.count; t++) {
        ptrdiff_t at[(LANES << POWER) + 1], from[LANES << POWER];
        const int pieces = NAME(row_pieces)(g, tiles.at + t * tile, tile, g->width, stride, at, from);
        for (ptrdiff_t c = 0; c < channels; c++, copies += tile)
            for (int i = 0; i < pieces; i++) {
                const REAL *begin = input + c * plane + from[i];
                const ptrdiff_t count = at[i + 1] - at[i], seen = (count - 1) * stride + 1;
                if (stride == 2) {
                    const V first = NAME(load_some)(begin, 0, seen), second = NAME(load_some)(begin + LANES, 0, seen - LANES);
                    NAME(store_first)(copies + at[i], EVENS(first, second), count);
                } else
                    for (ptrdiff_t p = 0; p < count; p++)
                        copies[at[i] + p] = begin[p * stride];
            }
    }
}

/* Pixels first to last - 1 of an image that is one long row: has_one_tap. `last` is a vector at least; places: room for a number for each
   of one_tap_channels(g); copies: for their pixels of all these, or a tile's where these are more. The other arguments as band() has them. */
static void NAME(one_tap)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                          ptrdiff_t last, int past, int afar, ptrdiff_t *places, REAL *copies)
{
    const int whole = g->stride_y == 1 && g->stride_x == 1 && g->out_width == g->width; /* pixels are side by side where they lie */
    const ptrdiff_t some = one_tap_channels(g), plane = g->height * g->width;
    for (ptrdiff_t at = first; at < last;) {
        const Laid tiles = next_laid(at, last, last - first, LANES, POWER);
        const int streams = past && some == g->channels && NAME(is_aligned)(g, tiles.at);
        for (ptrdiff_t c = 0; c < g->channels; c += some) {
            const ptrdiff_t count = c + some < g->channels ? some : g->channels - c;
            if (!whole)
                NAME(lay_pixels)(g, input + c * plane, count, tiles, copies);
            NAME(sum_laid)(g, tiles, count, places, whole ? input + c * plane + tiles.at : NULL, copies, weight + c, g->channels,
                           c ? NULL : bias, output + tiles.at, streams, afar);
        }
        at = tiles.after;
    }
}
