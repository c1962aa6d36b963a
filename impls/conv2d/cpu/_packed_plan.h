/* Direct sums over packed weights: which pixels are summed together, in what order, and what is copied before: what depends on the shape
   alone. See cpu.cython_packed. */
#pragma once

#include "_shape.h"

/* Blocks of output channels of a group that are summed together, two vectors each, or the last one more or less. */
static ptrdiff_t blocks_of(ptrdiff_t outputs, ptrdiff_t lanes)
{
    const ptrdiff_t vectors = (outputs + lanes - 1) / lanes;
    return MAX_BLOCK_VECTORS > 2 && vectors > 1 ? vectors / 2 : (vectors + 1) / 2;
}

/* Output channels that the packed weights of all of them have room for. */
static ptrdiff_t room_of(ptrdiff_t outputs, ptrdiff_t lanes)
{
    const ptrdiff_t vectors = (outputs + lanes - 1) / lanes, pairs = 2 * blocks_of(outputs, lanes);
    return (vectors > pairs ? vectors : pairs) * lanes;
}

/* Whether an output sees what is not in the image. */
static int padded(const Shape *g)
{
    return g->top > 0 || g->left > 0 || rows_seen(g, g->out_height) > g->height || columns_seen(g, g->out_width) > g->width;
}

/* Rows of outputs that go together: two where rows are short, which fills registers; but where fourteen pixels do, half as many are enough, and
   a padded row alone leaves out all of its taps that see only padding. */
static ptrdiff_t together(const Shape *g) { return g->out_width <= PRODUCT_ROWS / 2 && !(REGISTERS == 32 && padded(g)) ? 2 : 1; }

/* Pieces that rows are cut into, as even and as long as they can be, and pieces of an image. */
static ptrdiff_t parts(const Shape *g) { return (g->out_width + PRODUCT_ROWS - 1) / PRODUCT_ROWS; }
static ptrdiff_t pieces_of(const Shape *g) { return (g->out_height + together(g) - 1) / together(g) * parts(g); }

/* Where a piece lies: its image and rows, which part of them it is, and its columns, the first of them so many on from the part's. */
typedef struct {
    ptrdiff_t n, p, rows, part, on, q, end;
} Place;

static ptrdiff_t rows_from(const Shape *g, ptrdiff_t p) { return g->out_height - p < together(g) ? g->out_height - p : together(g); }

static Place place_of(const Shape *g, ptrdiff_t piece)
{
    const ptrdiff_t pieces = pieces_of(g), across = parts(g), part = piece % across, p = piece % pieces / across * together(g);
    return (Place){piece / pieces, p, rows_from(g, p), part, 0, g->out_width * part / across, g->out_width * (part + 1) / across};
}

/* Without the divisions, which take as long as the sums of a small 1x1 layer. */
static Place next_place(const Shape *g, Place at)
{
    const ptrdiff_t across = parts(g);
    at.q = at.end;
    if (++at.part == across) {
        at.part = at.q = 0;
        at.p += together(g);
        if (at.p >= g->out_height) {
            at.p = 0;
            at.n++;
        }
        at.rows = rows_from(g, at.p);
    }
    at.end = across == 1 ? g->out_width : g->out_width * (at.part + 1) / across;
    return at;
}

/* Outputs for which there are registers where so many vectors of output channels are summed together. */
static ptrdiff_t max_pixels(ptrdiff_t vectors) { return MAX_BLOCK_VECTORS > 2 ? 2 * PRODUCT_ROWS / vectors : PRODUCT_ROWS; }

/* Leaves `there` the first of its outputs, as even as can be but no more than `most`, and `rest` what comes after; whether there is any. */
static int cut(Place *there, Place *rest, ptrdiff_t most)
{
    const ptrdiff_t columns = there->end - there->q;
    if (there->rows * columns <= most)
        return 0;
    *rest = *there;
    if (there->rows > 1) {
        there->rows = 1;
        rest->rows--;
        rest->p++;
    } else {
        const ptrdiff_t cuts = (columns + most - 1) / most, first = (columns + cuts - 1) / cuts;
        there->end = rest->q += first;
        rest->on += first;
    }
    return 1;
}

/* From one piece's pixels to the next one's where images are tiled, not a multiple of what takes the same place in a cache. */
static ptrdiff_t tile_of(const Shape *g) { return g->channels * TILED_PITCH_ELEMENTS + 16; }

/* The rows of a padded image, `first` to `last` - 1, that its pieces `begin` to `end` - 1 see. */
static void piece_rows(const Shape *g, ptrdiff_t begin, ptrdiff_t end, ptrdiff_t *first, ptrdiff_t *last)
{
    const ptrdiff_t after = ((end - 1) / parts(g) + 1) * together(g);
    *first = begin / parts(g) * together(g) * g->stride_y;
    *last = ((after < g->out_height ? after : g->out_height) - 1) * g->stride_y + (g->taps_y - 1) * g->dilation_y + 1;
}

/* Whether so few outputs at each end of a row see padding that only these are tested for it, tap by tap. */
static int has_narrow_padding(const Shape *g)
{
    const ptrdiff_t starts = g->left + g->width - (g->taps_x - 1) * g->dilation_x; /* of outputs that see nothing right of the image */
    const ptrdiff_t clear = starts > 0 ? (starts - 1) / g->stride_x + 1 : 0;
    return clear >= g->out_width - MAX_EDGE_OUTPUTS && g->left <= MAX_EDGE_OUTPUTS * g->stride_x;
}

/* What is copied before it is summed, and by which threads. */
typedef struct {
    int copied;              /* images, with their padding, without what no output sees, or tiled */
    int tiled;               /* by pieces, each with all its channels side by side */
    int sides;               /* not copied, though outputs at the sides see padding */
    int own;                 /* each thread copies, and packs the weights for, what it sums itself */
    ptrdiff_t height, width; /* of an image as it is read: in a copy for a band of it, the most rows that a band sees */
    ptrdiff_t step_y, step_x; /* from a row or column of the image to the next that is copied */
    ptrdiff_t images;        /* copied at a time */
    ptrdiff_t bands;         /* that an image's pieces are cut into, where threads have their own */
} Plan;

/* What a tap sees: elements and columns on from what the first tap of the first channel sees. */
typedef struct {
    ptrdiff_t place, column;
} Tap;

/* The plan for `images` images of so many groups and elements of `size` bytes. Where each output sees one place, an image becomes one long
   row: *g then is that row's. */
static Plan plan_of(Shape *g, ptrdiff_t images, ptrdiff_t groups, ptrdiff_t threads, ptrdiff_t size)
{
    const ptrdiff_t pair = 2 * VECTOR_SIZE / size, pairs = (g->outputs + pair - 1) / pair;
    const int one_tap = g->taps_y == 1 && g->taps_x == 1, strided = g->stride_y > 1 || g->stride_x > 1;
    /* Half a vector is summed at many strided places in less time than they are tested for padding. And a copy also moves channels
       apart that take each other's place in the cache. */
    const int soon_copied = VECTOR_SIZE == 64 && g->outputs <= pair / 4 && g->stride_x > 2;
    const int sides = padded(g) && !one_tap && !soon_copied && has_narrow_padding(g) && together(g) == 1 &&
                      g->height * g->width * size % CACHE_SET_BYTES > 0;
    Plan plan = {.copied = padded(g) && !sides, .sides = sides, .step_y = 1, .step_x = 1};
    /* Images of strided 1x1 layers are read again for each block of outputs: many bytes in less time without what no output sees. */
    if (one_tap && strided && pairs >= MIN_STRIDED_COPY_PAIRS &&
        images * g->channels * g->height * g->width * size >= (FITS_TILES ? FAST_PAGES_BYTES : SHARED_COPY_BYTES))
        plan.copied = 1;
    const int long_row = one_tap && (plan.copied || !strided);
    plan.height = plan.copied ? rows_seen(g, g->out_height) : g->height;
    plan.width = plan.copied ? columns_seen(g, g->out_width) : g->width;
    if (long_row) {
        plan.step_y = g->stride_y;
        plan.step_x = g->stride_x;
        plan.height = g->out_height;
        plan.width = g->out_width;
        g->out_width *= g->out_height;
        g->width = g->out_width;
        g->height = g->out_height = g->stride_y = g->stride_x = 1;
        g->top = g->left = 0;
    }
    /* Threads that each have groups or images of their own need not wait for each other, nor read what another has copied, which takes
       up to four times as long where their caches are far apart. Where there are too few of either, each has a band of every image.
       Without groups the weights, which each then packs for itself, must be soon packed. */
    const int enough = groups * images >= EVEN_JOBS_PER_THREAD * threads || groups * images % threads == 0;
    const int soon = pairs <= MAX_OWN_WEIGHT_PAIRS &&
                     images * g->out_height * g->out_width >= MIN_OWN_PIXELS_PER_PAIR * pairs * threads && (enough || !long_row);
    plan.own = ((plan.copied || plan.sides) && soon) || (groups > 1 && enough);
    const ptrdiff_t pieces = pieces_of(g);
    plan.bands = enough ? 1 : threads < pieces ? threads : pieces;
    /* One pixel of each channel after the other is a page after the other: with few pixels at a time most of the way to them. Bands of
       tiles stay near a core for all its outputs, unless the weights are not soon packed by each thread. Where sums take 14 pixels at a
       time, each piece prefetches the next one's lines instead. */
    if (FITS_TILES && long_row && !plan.copied && !strided && pairs > 1 && g->channels * g->width * size > FAST_PAGES_BYTES) {
        plan.copied = plan.tiled = 1;
        plan.own = threads == 1 || images * g->width >= MIN_OWN_TILED_PIXELS * threads;
        plan.bands = plan.own ? (pieces * tile_of(g) * size + OWN_COPY_BYTES - 1) / OWN_COPY_BYTES : 1;
        if (plan.own && !enough)
            plan.bands = (plan.bands + threads - 1) / threads * threads;
        if (plan.bands > pieces)
            plan.bands = pieces;
        plan.images = plan.own ? 1 : SHARED_COPY_BYTES / (pieces * tile_of(g) * size);
        plan.images = plan.images < 1 ? 1 : plan.images > images ? images : plan.images;
        return plan;
    }
    if (plan.own && plan.copied && plan.bands > 1) {
        plan.height = 0;
        for (ptrdiff_t i = 0; i < plan.bands; i++) {
            ptrdiff_t first, last;
            piece_rows(g, pieces * i / plan.bands, (pieces * (i + 1) + plan.bands - 1) / plan.bands, &first, &last);
            plan.height = last - first > plan.height ? last - first : plan.height;
        }
    }
    /* As many images at a time as the cache holds, but not so many that a thread has none. */
    const ptrdiff_t bytes = g->channels * plan.height * plan.width * size, shared = groups * images / (EVEN_JOBS_PER_THREAD * threads);
    plan.images = (plan.own ? OWN_COPY_BYTES : SHARED_COPY_BYTES) / bytes;
    if (plan.own && plan.images > shared)
        plan.images = shared;
    if (plan.images < 1)
        plan.images = 1;
    if (plan.images > images || (!plan.copied && !plan.own))
        plan.images = images;
    return plan;
}
