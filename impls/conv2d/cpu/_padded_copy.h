/* Copies of rows of an image with their padding: with a stride, sorted so that what a tap sees lies side by side. See cpu.cython_direct, and
   _rows.h, whose tiles read them. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_PADDED_COPY
#define CONVBENCH_PADDED_COPY

#include "_direct_plan.h"
#include "_vectors.h"

/* Elements between the rows of one plane of a copy that serves `columns` outputs: whole tiles, and a vector that tiles of four read
   beyond their last. */
static ptrdiff_t NAME(pitch)(const Shape *g, ptrdiff_t columns)
{
    const ptrdiff_t whole = columns > 2 * LANES ? 4 * LANES : columns > LANES ? 2 * LANES : LANES;
    const ptrdiff_t more = (g->taps_x - 1) * g->dilation_x / g->stride_x;
    return (columns + whole - 1) / whole * whole + (more + LANES - 1) / LANES * LANES + (whole > 2 * LANES && !more ? LANES : 0);
}

/* Which lanes of a vector lie in the image. */
#ifdef MASK
typedef MASK NAME(there);
#else
typedef struct {
    ptrdiff_t first, last;
} NAME(there);
#endif

/* Of `count` vectors side by side, from a column on that lies `x` right of the image's first. */
INLINE void NAME(find)(ptrdiff_t count, ptrdiff_t x, ptrdiff_t width, NAME(there) there[4])
{
    for (ptrdiff_t i = 0; i < count; i++)
#ifdef MASK
        there[i] = NAME(mask)(-x - i * LANES, width - x - i * LANES);
#else
        there[i] = (NAME(there)){-x - i * LANES, width - x - i * LANES};
#endif
}

/* `count` vectors side by side, zeros for what is not in the image; there: NULL where all is. */
INLINE void NAME(load_there)(const int count, const REAL *from, const NAME(there) *there, V *loaded)
{
    _Pragma("GCC unroll 4") for (int i = 0; i < count; i++)
    {
        if (i * LANES % (CACHE_LINE_BYTES / SIZE) == 0)
            __builtin_prefetch(from + COPY_PREFETCH_BYTES / SIZE + i * LANES);
#ifdef MASK
        loaded[i] = there == NULL ? NAME(load)(from + i * LANES) : NAME(load_masked)(from + i * LANES, there[i]);
#else
        loaded[i] = there == NULL ? NAME(load)(from + i * LANES) : NAME(load_some)(from + i * LANES, there[i].first, there[i].last);
#endif
    }
}

/* Of the step that begins with what output q sees. */
#define THERE(stride)                                                                                                  \
    (q >= inner && q + LANES <= outer ? NULL                                                                           \
     : q == 0                         ? at_first                                                                       \
     : narrow                         ? (NAME(find)(stride, x + stride * q, width, at_last), at_last)                  \
                                      : at_last)

/* Copy those of `count` rows of each channel from (y, x) on that outputs see, zeros where that is padding; each row as `planes` planes
   of every stride-th column, so that a tap's pixels lie side by side. `columns` outputs see it; what lies behind is zeros as well: tiles are
   computed whole, and what happened to be there may be numbers so small that Intel's processors take a hundred times as long for each. */
static void NAME(fill)(const Shape *g, const REAL *input, REAL *copy, ptrdiff_t y, ptrdiff_t count, ptrdiff_t x,
                       ptrdiff_t columns, ptrdiff_t pitch)
{
    const ptrdiff_t stride = g->stride_x, planes = planes_of(g), height = g->height, width = g->width;
    const ptrdiff_t used = columns + (g->taps_x - 1) * g->dilation_x / stride, whole = NAME(pitch)(g, columns);
    /* Rows are read in steps of `stride` vectors, up to four. Those of outputs `inner` to `outer` lie in the image; what does of the first and
       the last is found once, not for each row, which would take as long as sorting it. */
    const ptrdiff_t step = (stride < 4 ? stride : 4) * LANES, last = (used - 1) / LANES * LANES;
    const ptrdiff_t inner = x < 0 ? (-x + step - 1) / step * LANES : 0, outer = x < width ? (width - x) / step * LANES : 0;
    const int narrow = inner > LANES || outer < last; /* so are others between them not whole */
    NAME(there) at_first[4], at_last[4];
    NAME(find)(step / LANES, x, width, at_first);
    NAME(find)(step / LANES, x + last / LANES * step, width, at_last);
    for (ptrdiff_t c = 0; c < g->channels; c++)
        for (ptrdiff_t i = 0; i < count; i++, copy += planes * pitch) {
            const ptrdiff_t row = y + i;
            const REAL *line = input + (c * height + row) * width + x;
            if (i % g->stride_y >= seen_of(g->stride_y, g->taps_y, g->dilation_y))
                continue;
            if (row < 0 || row >= height) {
                memset(copy, 0, planes * pitch * sizeof(REAL));
                continue;
            }
            for (ptrdiff_t phase = 0; phase < planes; phase++)
                for (ptrdiff_t q = last + LANES; q < whole; q += LANES)
                    NAME(store)(copy + phase * pitch + q, NAME(splat)(0));
            if (stride == 1)
                for (ptrdiff_t q = 0; q < used; q += LANES) {
                    V one;
                    NAME(load_there)(1, line + q, THERE(1), &one);
                    NAME(store)(copy + q, one);
                }
            else if (stride == 2)
                for (ptrdiff_t q = 0; q < used; q += LANES) {
                    V pair[2];
                    NAME(load_there)(2, line + 2 * q, THERE(2), pair);
                    NAME(store)(copy + q, EVENS(pair[0], pair[1]));
                    if (planes == 2)
                        NAME(store)(copy + pitch + q, ODDS(pair[0], pair[1]));
                }
            else if (stride == 4)
                for (ptrdiff_t q = 0; q < used; q += LANES) {
                    V four[4];
                    NAME(load_there)(4, line + 4 * q, THERE(4), four);
                    const V evens[2] = {EVENS(four[0], four[1]), EVENS(four[2], four[3])};
                    const V odds[2] = {ODDS(four[0], four[1]), ODDS(four[2], four[3])};
                    NAME(store)(copy + q, EVENS(evens[0], evens[1]));
                    if (planes > 1)
                        NAME(store)(copy + pitch + q, EVENS(odds[0], odds[1]));
                    if (planes > 2)
                        NAME(store)(copy + 2 * pitch + q, ODDS(evens[0], evens[1]));
                    if (planes > 3)
                        NAME(store)(copy + 3 * pitch + q, ODDS(odds[0], odds[1]));
                }
            else
                for (ptrdiff_t phase = 0; phase < planes; phase++) {
                    const ptrdiff_t before = -x - phase, after = width - x - phase;
                    const ptrdiff_t ends = after > 0 ? (after + stride - 1) / stride : 0, end = ends < used ? ends : used;
                    const ptrdiff_t begins = before > 0 ? (before + stride - 1) / stride : 0, begin = begins < end ? begins : end;
                    REAL *plane = copy + phase * pitch;
                    memset(plane, 0, begin * sizeof(REAL));
                    for (ptrdiff_t q = begin; q < end; q++)
                        plane[q] = line[phase + q * stride];
                    memset(plane + end, 0, (used - end) * sizeof(REAL));
                }
        }
}
#endif
