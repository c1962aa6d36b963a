/* Which of its ways cpu.cython_direct computes a group of images, and how it cuts them: what depends on the shape alone. */
#pragma once

#include "_shape.h"

/* Whether an image is copied with its padding; otherwise it is read in place, but for its edges: there the copy costs more. */
static int is_copied(const Shape *g)
{
    return g->stride_x > 1 || g->width <= MAX_COPIED_COLUMNS || g->out_width <= MAX_COPIED_COLUMNS / 4;
}

/* Whether rows have sums of several outputs: of fewer, those of four rows of one output are as fast, and with 32 registers faster. */
static int is_multi_output(const Shape *g) { return g->outputs > MAX_SINGLE_OUTPUTS(is_copied(g)); }

/* How many neighbours of each `stride` the outputs see. */
static ptrdiff_t seen_of(ptrdiff_t stride, ptrdiff_t taps, ptrdiff_t dilation)
{
    const ptrdiff_t span = dilation % stride == 0 ? 1 : (taps - 1) * dilation + 1;
    return stride < span ? stride : span;
}

/* Planes that a copied row is sorted into, each of every stride-th column. */
static ptrdiff_t planes_of(const Shape *g) { return seen_of(g->stride_x, g->taps_x, g->dilation_x); }

static int is_inside(const Shape *g, ptrdiff_t at, ptrdiff_t span) { return at >= g->left && at - g->left + span <= g->width; }

/* Where rows of outputs are cut: `at` the first column; `tiles` tiles of 1 << power vectors; inside: every input column that they read may be
   read in place. */
typedef struct {
    ptrdiff_t at, tiles;
    int power, inside;
} Cut;

/* As few cuts and as wide tiles as there can be. Of a copy, whose rows end in room for it, whole tiles are computed even where not all of
   their columns are stored. In place, the edges, which need a padded copy, are one vector wide, and tiles overlap. */
static Cut next_cut(const Shape *g, ptrdiff_t at, ptrdiff_t lanes)
{
    const ptrdiff_t left = g->out_width - at, more = (g->taps_x - 1) * g->dilation_x;
    const int widest = is_multi_output(g) ? TILE_LOG2_VECTORS : 2;
    if (is_copied(g)) {
        const int fitting = left > 2 * lanes ? 2 : left > lanes, power = fitting < widest ? fitting : widest;
        const ptrdiff_t tiles = left / (lanes << power);
        return (Cut){at, tiles + (left - tiles * (lanes << power) > (lanes << power) / 2 || !tiles), power, 1};
    }
    for (int power = widest; power >= 0; power--) {
        ptrdiff_t tiles = left / (lanes << power);
        /* Tiles of four vectors read a whole one beyond their last. */
        while (tiles && !is_inside(g, at, tiles * (lanes << power) + (power == 2 && more < lanes ? lanes : more)))
            tiles--;
        if (tiles)
            return (Cut){at, tiles, power, 1};
    }
    if (left < lanes)
        at -= lanes - left;
    return (Cut){at, 1, 0, is_inside(g, at, lanes + more)};
}

/* Whether there are strips for an image. */
static int has_strips(const Shape *g)
{
    return g->channels == 1 && g->taps_y == g->taps_x && (g->taps_y == 3 || (HAS_LARGE_STRIPS && (g->taps_y == 5 || g->taps_y == 7))) &&
           g->stride_y == g->stride_x && g->stride_x <= 2 && g->dilation_y == 1 && g->dilation_x == 1 && g->width <= MAX_STRIP_COLUMNS;
}

/* So many parts of each of `jobs` jobs, or some more, so that few jobs are even work for the threads. */
static ptrdiff_t even_parts(const Shape *g, ptrdiff_t parts, ptrdiff_t jobs, ptrdiff_t threads)
{
    const int uneven = jobs * parts % threads != 0 && jobs < 8 * threads && g->out_height >= threads * g->taps_y;
    return uneven ? (parts + threads - 1) / threads * threads : parts;
}

/* Tiles copied tap by tap */

/* Whether rows that are copied are copied tap by tap too: where more lanes of rows are empty than it takes to copy each pixel once more for
   every tap. */
static int uses_im2col(const Shape *g, ptrdiff_t lanes)
{
    const ptrdiff_t taps = g->channels * g->taps_y * g->taps_x, vectors = (g->out_width + lanes - 1) / lanes;
    if (!is_copied(g) || taps < MIN_IM2COL_TAPS || g->outputs <= 2)
        return 0;
    if (REGISTERS == 16)
        return g->outputs >= MIN_IM2COL_OUTPUTS;
    /* In tenths, a vector that is alone in its tile one fifth more. */
    return g->outputs * lanes * (10 * vectors + 2 * (vectors % 2)) > 10 * g->out_width * (g->outputs + IM2COL_COPY_OUTPUTS);
}

/* How many channels are copied tap by tap at once, evenly many each time. */
static ptrdiff_t im2col_channels(const Shape *g)
{
    const ptrdiff_t times = (g->channels * g->taps_y * g->taps_x + MAX_IM2COL_TAPS - 1) / MAX_IM2COL_TAPS;
    return (g->channels + times - 1) / times;
}

/* 1x1 layers */

/* Whether an output channel is a weighted sum of planes of the input; of more outputs, is_pointwise. */
static int sums_planes(const Shape *g)
{
    return g->outputs <= MAX_PLANE_SUM_OUTPUTS && g->taps_y == 1 && g->taps_x == 1 && g->stride_y == 1 && g->stride_x == 1 && g->top == 0 &&
           g->left == 0 && g->out_height == g->height && g->out_width == g->width;
}

/* Whether each output sees one pixel of each channel, so that an image is one long row of tiles; of a vector at least. */
static int is_pointwise(const Shape *g, ptrdiff_t lanes)
{
    return g->outputs > MAX_PLANE_SUM_OUTPUTS && g->taps_y == 1 && g->taps_x == 1 && g->top == 0 && g->left == 0 && g->out_height * g->out_width >= lanes &&
           (g->out_height - 1) * g->stride_y < g->height && (g->out_width - 1) * g->stride_x < g->width;
}

/* How many channels are copied at once there: all of them with 32 registers, for whose twelve outputs fewer are no faster. */
static ptrdiff_t pointwise_channels(const Shape *g) { return REGISTERS == 16 ? im2col_channels(g) : g->channels; }

static int has_slow_planes(const Shape *g) { return g->height * g->width > MAX_FAST_PLANE_ELEMENTS && g->height * g->width % 64 == 0; }

/* Whether channels, of elements of `size` bytes, lie pages apart. */
static int has_paged_planes(const Shape *g, ptrdiff_t size) { return g->height * g->width * size % PAGE_BYTES == 0; }

/* Whether vectors from that pixel of every output channel on are aligned, as the output is. */
static int is_aligned(const Shape *g, ptrdiff_t pixel, ptrdiff_t lanes)
{
    return g->out_height * g->out_width % lanes == 0 && pixel % lanes == 0;
}

/* How far ahead of a pixel the line is prefetched in which a vector of a later channel ends: with the tile before came the one in which it
   begins. */
static ptrdiff_t channel_prefetch_distance(const Shape *g, ptrdiff_t lanes) { return PREFETCH_CHANNELS * g->height * g->width + lanes - 1; }

/* How far ahead of a tile that is read pixels are prefetched. */
static ptrdiff_t prefetch_distance(const Shape *g, ptrdiff_t tile, ptrdiff_t lanes)
{
    if (REGISTERS == 16)
        return 2 * tile;
    if (g->channels > MAX_TILE_PREFETCH_CHANNELS)
        return channel_prefetch_distance(g, lanes);
    return (2 + MAX_TILE_PREFETCH_CHANNELS / g->channels) * tile;
}

/* Whether an image is one that a core's own caches keep, of many channels. */
static int is_cached(const Shape *g)
{
    return g->channels > MAX_UNCOPIED_TILE_CHANNELS && g->channels * g->height * g->width <= MAX_CACHED_IMAGE_ELEMENTS;
}

/* Whether the first outputs with packed weights copy what further outputs see. */
static int copies_pixels(const Shape *g)
{
    return g->outputs > MAX_POINTWISE_OUTPUTS ? g->channels > MAX_UNCOPIED_CHANNELS : g->outputs > MAX_UNCOPIED_OUTPUTS && is_cached(g);
}

/* Whether these images of a layer that is_pointwise are summed with packed weights. uncached: they are more than MAX_CACHED_BATCH_BYTES;
   alone: one thread sums them, which waits for no other to pack weights. */
static int packs_weights(const Shape *g, ptrdiff_t images, int uncached, int alone)
{
    const ptrdiff_t pixels = images * g->height * g->width;
    if (REGISTERS == 16 || g->stride_y != 1 || g->stride_x != 1 || g->out_width != g->width)
        return 0;
    if (g->outputs > MAX_POINTWISE_OUTPUTS) {
        if (copies_pixels(g))
            return uncached && pixels >= MIN_COPIED_PIXELS_PER_OUTPUT * g->outputs;
        return pixels >= 2 * MIN_POINTWISE_PACKED_PIXELS;
    }
    if (g->outputs > MAX_POINTWISE_OUTPUTS / 2 &&
        (is_cached(g) ? !uncached && !alone : has_slow_planes(g) && pixels * g->channels > MAX_CACHED_IMAGE_ELEMENTS))
        return 0;
    return pixels >= (copies_pixels(g) ? MIN_COPIED_PIXELS_PER_OUTPUT * g->outputs : MIN_POINTWISE_PACKED_PIXELS);
}

/* Outputs of a tile with packed weights, at most, and how many even shares of them there are. */
static ptrdiff_t tile_outputs(const Shape *g)
{
    const int whole = g->outputs > MAX_POINTWISE_OUTPUTS / 2 && g->outputs <= MAX_POINTWISE_OUTPUTS && !copies_pixels(g);
    return whole ? MAX_POINTWISE_OUTPUTS : MAX_POINTWISE_OUTPUTS / 2;
}
static ptrdiff_t output_shares(const Shape *g) { return (g->outputs + tile_outputs(g) - 1) / tile_outputs(g); }
