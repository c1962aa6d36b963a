/* Convolves the cases of standard input by one kernel and one thread, where no Python is: -DDIRECT, -DPACKED or -DWINOGRAD, of double with
   -DDOUBLE. A case is 12 numbers, then the input, weight and bias; its output goes to standard output. */
#include "_scratch.h"
#include <stdint.h>
#include <stdio.h>
#ifdef DOUBLE
#include "_double.h"
#else
#include "_float.h"
#endif

#if defined(DIRECT)
#include "_depthwise.h"
#include "_plane_sums.h"
#include "_pointwise.h"
#include "_pointwise_packed.h"
#include "_rows.h"

/* One group of one image. */
static void convolve(const Shape *g, ptrdiff_t images, const REAL *input, const REAL *weight, const REAL *bias, REAL *output)
{
    const ptrdiff_t plane = g->out_height * g->out_width;
    if (sums_planes(g)) {
        NAME(plane_sums)(g, input, weight, bias, output, 0, plane, 0);
        return;
    }
    if (is_pointwise(g, LANES)) {
        REAL *copies = scratch((plane + 2 * LANES) * g->channels * sizeof(REAL)), *packed = scratch(g->outputs * g->channels * sizeof(REAL));
        ptrdiff_t *places = scratch(g->channels * sizeof(ptrdiff_t));
        if (packs_weights(g, images, 1, 1)) {
            NAME(pack_pointwise)(g, weight, packed);
            NAME(pointwise_packed)(g, input, packed, bias, output, 0, plane, 0, copies);
        } else
            NAME(pointwise)(g, input, weight, bias, output, 0, plane, 0, 1, places, copies);
        free(copies);
        free(packed);
        free(places);
        return;
    }
    const ptrdiff_t pieces = NAME(pieces)(g, 1, images);
    REAL *work = scratch(NAME(work)(g, pieces) * sizeof(REAL));
    ptrdiff_t *offsets = scratch(g->taps_x * (1 + g->channels * g->taps_y) * sizeof(ptrdiff_t));
    for (ptrdiff_t i = 0; i < pieces; i++)
        NAME(band)(g, input, weight, bias, output, g->out_height * i / pieces, g->out_height * (i + 1) / pieces, 0, offsets, work);
    free(work);
    free(offsets);
}

static void convolve_all(const Shape *g, ptrdiff_t images, ptrdiff_t groups, const REAL *input, const REAL *weight, const REAL *bias, REAL *output)
{
    for (ptrdiff_t i = 0; i < images * groups; i++) {
        const ptrdiff_t k = i % groups * g->outputs;
        convolve(g, images, input + i * g->channels * g->height * g->width, weight + k * g->channels * g->taps_y * g->taps_x, bias + k,
                 output + i * g->outputs * g->out_height * g->out_width);
    }
    if (groups < 8 || g->channels > 1 || g->outputs > 1)
        return;
    /* Once more, and not the same: across channels. */
    REAL *factors = scratch(NAME(depthwise_weights)(g) * sizeof(REAL)), *work = scratch(NAME(depthwise_work)(g, 1) * sizeof(REAL));
    memset(output, 0, images * groups * g->out_height * g->out_width * sizeof(REAL));
    for (ptrdiff_t n = 0; n < images; n++)
        for (ptrdiff_t c = 0; c < groups; c += LANES) {
            const ptrdiff_t count = groups - c < LANES ? groups - c : LANES, at = n * groups + c;
            NAME(depthwise_transpose)(g, weight + c * g->taps_y * g->taps_x, count, factors);
            NAME(depthwise)(g, input + at * g->height * g->width, factors, bias + c, output + at * g->out_height * g->out_width, count, 0,
                            g->out_height, 1, NULL, work);
        }
    free(factors);
    free(work);
}
#elif defined(PACKED)
#include "_packed.h"

static void convolve_all(const Shape *given, ptrdiff_t images, ptrdiff_t groups, const REAL *input, const REAL *weight, const REAL *bias, REAL *output)
{
    Shape row = *given, *g = &row;
    const Plan plan = plan_of(g, 1, groups, 1, SIZE);
    const ptrdiff_t taps = g->channels * g->taps_y * g->taps_x, pixels = given->height * given->width, plane = plan.height * plan.width;
    REAL *copies = scratch(g->channels * plane * sizeof(REAL)), *packed = scratch((taps + LANES) * MAX_BLOCK_VECTORS * LANES * sizeof(REAL));
    Tap *places = scratch(taps * sizeof(Tap));
    for (ptrdiff_t i = 0; i < taps; i++) {
        places[i].column = i % g->taps_x * g->dilation_x;
        places[i].place = i / (g->taps_y * g->taps_x) * plane + i / g->taps_x % g->taps_y * g->dilation_y * plan.width + places[i].column;
    }
    for (ptrdiff_t i = 0; i < images * groups; i++, input += g->channels * pixels) {
        for (ptrdiff_t c = 0; c < g->channels && plan.copied; c++)
            NAME(pad)(given, input + c * pixels, copies + c * plane, plan.width, 0, plan.height, plan.step_y, plan.step_x);
        for (ptrdiff_t block = 0; block < blocks_of(g->outputs, LANES); block++) {
            const ptrdiff_t first = block * PAIR, last = block == blocks_of(g->outputs, LANES) - 1, k = i % groups * g->outputs + first;
            const ptrdiff_t outputs = last ? g->outputs - first : PAIR, far = g->out_height * g->out_width;
            NAME(pack)(weight + k * taps, taps, outputs, packed);
            NAME(pieces)(g, &plan, plan.copied ? copies : input, 0, places, packed, bias + k, output + (i * g->outputs + first) * far, 0,
                         outputs, 0, pieces_of(g));
        }
    }
    free(copies);
    free(packed);
    free(places);
}
#elif defined(WINOGRAD)
#include "_winograd.h"

static void convolve_all(const Shape *g, ptrdiff_t images, ptrdiff_t groups, const REAL *input, const REAL *weight, const REAL *bias, REAL *output)
{
    const Grouping w = NAME(grouping)(g, images);
    const ptrdiff_t rows = images * w.tiles_y, bands = (rows + w.rows - 1) / w.rows, in = g->channels * g->height * g->width;
    const ptrdiff_t image = groups * g->outputs * g->out_height * g->out_width;
    REAL *tiles = scratch(NAME(group_area)(&w) * bands * w.parts * sizeof(REAL)), *work = scratch(NAME(winograd_work)(g, &w) * sizeof(REAL));
    for (ptrdiff_t group = 0; group < groups; group++) {
        const ptrdiff_t k = group * g->outputs;
        NAME(all)(g, &w, input + group * in, groups * in, weight + k * g->channels * g->taps_y * g->taps_x, NULL, bias + k,
                  output + k * g->out_height * g->out_width, image, 0, rows, tiles, work);
    }
    free(tiles);
    free(work);
}
#endif

static REAL *numbers(ptrdiff_t count)
{
    REAL *all = scratch(count * sizeof(REAL));
    if (fread(all, sizeof(REAL), count, stdin) != (size_t)count)
        exit(1);
    return all;
}

int main(void)
{
    int64_t said[12]; /* images, groups, channels and outputs of a group, height, width, taps down and across, stride, dilation, padding */
    while (fread(said, sizeof(int64_t), 12, stdin) == 12) {
        Shape g = {.channels = said[2], .outputs = said[3], .height = said[4], .width = said[5], .taps_y = said[6], .taps_x = said[7],
                   .stride_y = said[8], .stride_x = said[8], .dilation_y = said[9], .dilation_x = said[9], .top = said[10], .left = said[11]};
        size_output(&g, g.top, g.left);
        const ptrdiff_t images = said[0], groups = said[1], count = images * groups * g.outputs * g.out_height * g.out_width;
        REAL *input = numbers(images * groups * g.channels * g.height * g.width);
        REAL *weight = numbers(groups * g.outputs * g.channels * g.taps_y * g.taps_x), *bias = numbers(groups * g.outputs);
        REAL *output = scratch(count * sizeof(REAL));
        convolve_all(&g, images, groups, input, weight, bias, output);
        fwrite(output, sizeof(REAL), count, stdout);
        free(input);
        free(weight);
        free(bias);
        free(output);
    }
    return 0;
}
