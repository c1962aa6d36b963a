/* Sums of images of one channel in place, without a copy: strips of a few vectors side by side, down which go as many rows of sums as see one
   row of the input, so that all of them have it at once. Masks leave out what lies beside the rows. See cpu.cython_direct. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_SINGLE_CHANNEL
#define CONVBENCH_SINGLE_CHANNEL

#include "_direct_plan.h"
#include "_vectors.h"

/* How many pieces the output rows of `images` images make: so many that what one strip sees beside its own lies near for the next. */
static ptrdiff_t NAME(strip_pieces)(const Shape *g, ptrdiff_t threads, ptrdiff_t images)
{
    const ptrdiff_t outputs = images * g->outputs * g->out_height * g->out_width * (ptrdiff_t)sizeof(REAL);
    const ptrdiff_t bytes = outputs < MIN_STREAMED_BYTES ? STRIP_PIECE_BYTES : UNCACHED_STRIP_PIECE_BYTES;
    const ptrdiff_t row = g->stride_y * g->width * (ptrdiff_t)sizeof(REAL);
    const ptrdiff_t rows = bytes / row > MIN_STRIP_ROWS * g->taps_y ? bytes / row : MIN_STRIP_ROWS * g->taps_y;
    return even_parts(g, (g->out_height + rows - 1) / rows, images, threads);
}

#ifdef MASK
/* Places that a row is loaded from: one, from which others are shifted, or one for each tap, or pair of taps where the stride parts pairs. */
#ifdef SHIFTED
#define ROW_LOADS(size, stride) 1
#else
#define ROW_LOADS(size, stride) (((size) + (stride) - 1) / (stride))
#endif

/* The vectors of a row from `from` on, a vector for each that is summed and one more where others are shifted from them; with a stride
   of 2, those of even and of odd columns. */
INLINE void NAME(load_row)(const int vectors, const int stride, const REAL *from, MASK there[5][2], V whole[2][5])
{
    _Pragma("GCC unroll 5") for (int v = 0; v < vectors; v++)
    {
        const V low = NAME(load_masked)(from + v * stride * LANES, there[v][0]);
        whole[0][v] = low;
        if (stride == 2) {
            const V high = NAME(load_masked)(from + (2 * v + 1) * LANES, there[v][1]);
            whole[0][v] = EVENS(low, high);
            whole[1][v] = ODDS(low, high);
        }
    }
}

#define STRIP_ARGUMENTS                                                                                                \
    const Shape *g, const REAL *input, const REAL *weight, REAL start, REAL *output, ptrdiff_t at, ptrdiff_t first, ptrdiff_t last, int streamed

/* Output rows first to last - 1 of the strip of `vectors` vectors from column `at` on; streamed: its vectors are whole and aligned, and
   non-temporal stores write them. */
INLINE void NAME(strip)(const int vectors, const int size, const int stride, STRIP_ARGUMENTS)
{
    const int live = (size + stride - 1) / stride; /* rows of sums that see a row of the input */
    const int hold = size == 3 && HAS_LARGE_STRIPS; /* weights in registers, where there are so many */
    const int places = ROW_LOADS(size, stride), loaded = vectors + (places == 1);
    const ptrdiff_t column = at * stride - g->left, rest = g->out_width - at - (vectors - 1) * LANES; /* columns of the last vector */
    MASK there[3][5][2]; /* what lies in the image, from each place on */
    V held[9], sums[7][4], whole[2][5];
    for (int place = 0; place < places; place++)
        for (int i = 0; i < loaded * stride; i++) {
            const ptrdiff_t begin = column + place * stride + i * LANES;
            there[place][i / stride][i % stride] = NAME(mask)(-begin, g->width - begin);
        }
    if (hold)
        _Pragma("GCC unroll 9") for (int i = 0; i < 9; i++)
        {
            held[i] = NAME(splat)(weight[i]);
            KEEP(held[i]);
        }
    _Pragma("GCC unroll 7") for (int age = 0; age < live; age++)
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) sums[age][v] = NAME(splat)(start);
    for (ptrdiff_t p = first; p < last + live - 1; p++) { /* sums[age] are those of output row p - age */
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
        {
            _Pragma("GCC unroll 7") for (int age = live - 1; age > 0; age--) sums[age][v] = sums[age - 1][v];
            sums[0][v] = NAME(splat)(start);
        }
        _Pragma("GCC unroll 2") for (int i = 0; i < stride; i++)
        {
            const ptrdiff_t row = p * stride + i - g->top;
            if (row < 0 || row >= g->height)
                continue;
            const REAL *from = input + row * g->width + column;
            _Pragma("GCC unroll 10") for (int v = 0; v < loaded * stride; v++)
                __builtin_prefetch(from + STRIP_PREFETCH_ROWS * stride * g->width + v * LANES);
            _Pragma("GCC unroll 7") for (int s = 0; s < size; s++)
            {
                V x[4];
                if (s % stride == 0 && s / stride < places)
                    NAME(load_row)(loaded, stride, from + s, there[s / stride], whole);
                _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++)
#ifdef SHIFTED
                    x[v] = s / stride ? SHIFTED(whole[s % stride][v], whole[s % stride][v + 1], s / stride) : whole[s % stride][v];
#else
                    x[v] = whole[s % stride][v];
#endif
                _Pragma("GCC unroll 7") for (int age = 0; age < live; age++) if (age * stride + i < size)
                {
                    const int tap = (age * stride + i) * size + s;
                    const V w = hold ? held[hold ? tap : 0] : NAME(splat)(weight[tap]);
                    _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) MULTIPLY_ADD(sums[age][v], w, x[v]);
                }
            }
        }
        if (p - live + 1 < first)
            continue;
        REAL *to = output + (p - live + 1) * g->out_width + at;
        if (streamed) {
            _Pragma("GCC unroll 4") for (int v = 0; v < vectors; v++) NAME(stream)(to + v * LANES, sums[live - 1][v]);
            continue;
        }
        _Pragma("GCC unroll 4") for (int v = 0; v < vectors - 1; v++) NAME(store)(to + v * LANES, sums[live - 1][v]);
        NAME(store_first)(to + (vectors - 1) * LANES, sums[live - 1][vectors - 1], rest);
    }
}
typedef void NAME(strip_of)(STRIP_ARGUMENTS);
#define STRIP(vectors, size, stride)                                                                                   \
    static void NAME(strip_##vectors##_##size##_##stride)(STRIP_ARGUMENTS)                                             \
    {                                                                                                                  \
        NAME(strip)(vectors, size, stride, g, input, weight, start, output, at, first, last, streamed);                \
    }
#define STRIPS(size, stride) STRIP(1, size, stride) STRIP(2, size, stride) STRIP(3, size, stride)
STRIPS(3, 1)
STRIPS(3, 2)
#if HAS_LARGE_STRIPS
STRIP(4, 3, 1)
STRIP(4, 3, 2)
STRIPS(5, 1)
STRIP(4, 5, 1)
STRIPS(5, 2)
STRIP(4, 5, 2)
STRIPS(7, 1)
STRIPS(7, 2)
STRIP(4, 7, 2)
#endif
#define STRIP_OF(vectors, size, stride) NAME(strip_##vectors##_##size##_##stride)
#define STRIPS_OF(size, stride) STRIP_OF(1, size, stride), STRIP_OF(2, size, stride), STRIP_OF(3, size, stride)

/* Output rows first to last - 1 of all output channels of one image. */
static void NAME(strips)(const Shape *g, const REAL *input, const REAL *weight, const REAL *bias, REAL *output, ptrdiff_t first,
                         ptrdiff_t last, int streamed)
{
    static NAME(strip_of) *const strip[][2][4] = {
#if HAS_LARGE_STRIPS
        {{STRIPS_OF(3, 1), STRIP_OF(4, 3, 1)}, {STRIPS_OF(3, 2), STRIP_OF(4, 3, 2)}},
        {{STRIPS_OF(5, 1), STRIP_OF(4, 5, 1)}, {STRIPS_OF(5, 2), STRIP_OF(4, 5, 2)}},
        {{STRIPS_OF(7, 1)}, {STRIPS_OF(7, 2), STRIP_OF(4, 7, 2)}},
#else
        {{STRIPS_OF(3, 1)}, {STRIPS_OF(3, 2)}},
#endif
    };
    const ptrdiff_t vectors = (g->out_width + LANES - 1) / LANES, widest = MAX_STRIP_VECTORS(g->taps_x, g->stride_x);
    const ptrdiff_t count = (vectors + widest - 1) / widest;
    for (ptrdiff_t k = 0; k < g->outputs; k++)
        for (ptrdiff_t i = 0; i < count; i++) {
            const ptrdiff_t begin = vectors * i / count, end = vectors * (i + 1) / count;
            strip[g->taps_x / 2 - 1][g->stride_x - 1][end - begin - 1](
                g, input, weight + k * g->taps_y * g->taps_x, bias[k], output + k * g->out_height * g->out_width, begin * LANES, first,
                last, streamed && g->out_width % LANES == 0);
        }
}
#endif
#endif
