/* 1x1 layers of one or two outputs: weighted sums of planes, which wait for memory. Blocks of pixels are summed over a few planes at a time,
   more than which the machine's own prefetcher follows badly. See cpu.cython_direct. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_PLANE_SUMS
#define CONVBENCH_PLANE_SUMS

#include "_direct_plan.h"
#include "_vectors.h"

/* Add `count` planes, `plane` elements apart, to `pixels` pixels. sums: so far, or NULL where they begin with `start`; to: where they go, whole
   vectors if `padded`; streams: by non-temporal stores. */
INLINE void NAME(add_planes)(const int count, ptrdiff_t pixels, const REAL *input, ptrdiff_t plane, const REAL *weight, REAL start,
                             const REAL *sums, REAL *to, int padded, int streams)
{
    V factors[PLANES_AT_A_TIME];
    ptrdiff_t i = 0;
    _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) factors[c] = NAME(splat)(weight[c]);
    for (; i + LANES <= pixels; i += LANES) {
        V sum = sums ? NAME(load)(sums + i) : NAME(splat)(start);
        _Pragma("GCC unroll 8") for (int c = 0; c < count; c++) sum += factors[c] * NAME(load)(input + c * plane + i);
        if (streams)
            NAME(stream)(to + i, sum);
        else
            NAME(store)(to + i, sum);
    }
    if (i < pixels) {
        V sum = sums ? NAME(load)(sums + i) : NAME(splat)(start);
        _Pragma("GCC unroll 8") for (int c = 0; c < count; c++)
            sum += factors[c] * NAME(load_some)(input + c * plane + i, 0, pixels - i);
        NAME(store_first)(to + i, sum, padded ? LANES : pixels - i);
    }
}

/* Pixels first to last - 1 of an image that sums_planes. streamed: as band() has it. */
static void NAME(plane_sums)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                             ptrdiff_t last, int streamed)
{
    const ptrdiff_t plane = g->height * g->width, block = PLANE_BLOCK_BYTES / SIZE;
    REAL sums[MAX_PLANE_SUM_OUTPUTS][PLANE_BLOCK_BYTES / SIZE];
    for (ptrdiff_t at = first; at < last; at += block) {
        const ptrdiff_t pixels = last - at < block ? last - at : block;
        for (ptrdiff_t c = 0, count; c < g->channels; c += count) {
            const ptrdiff_t left = g->channels - c;
            count = left < PLANES_AT_A_TIME ? left : PLANES_AT_A_TIME;
            for (ptrdiff_t k = 0; k < g->outputs; k++) {
                const int ends = count == left, streams = ends && streamed && plane % LANES == 0;
                const REAL *so_far = c ? sums[k] : NULL, *from = input + c * plane + at, *factors = weight + k * g->channels + c;
                REAL *to = ends ? output + k * plane + at : sums[k];
#define ADD_PLANES(count) NAME(add_planes)(count, pixels, from, plane, factors, bias[k], so_far, to, !ends, streams)
                switch (count) {
                case 1: ADD_PLANES(1); break;
                case 2: ADD_PLANES(2); break;
                case 3: ADD_PLANES(3); break;
                case 4: ADD_PLANES(4); break;
                case 5: ADD_PLANES(5); break;
                case 6: ADD_PLANES(6); break;
                case 7: ADD_PLANES(7); break;
                default: ADD_PLANES(8);
                }
#undef ADD_PLANES
            }
        }
    }
}
#endif
