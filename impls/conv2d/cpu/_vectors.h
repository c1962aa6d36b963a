/* Vectors as wide as this machine's, of the type of element that _float.h or _double.h selects (float where none is selected). GCC's vector
   extensions (also clang's), so that the same text is compiled for AVX-512, AVX, SSE and NEON. */
#ifndef REAL
#include "_float.h"
#endif
#ifndef CONVBENCH_VECTORS
#define CONVBENCH_VECTORS

#include "_machine.h"
#include <string.h>

#define IDENTITY(j) (j)
#define EACH2(f) f(0), f(1)
#define EACH4(f) EACH2(f), f(2), f(3)
#define EACH8(f) EACH4(f), f(4), f(5), f(6), f(7)
#define EACH16(f) EACH8(f), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#define PAIR (2 * LANES) /* elements of two vectors: output channels that packed and transformed weights have side by side */

#undef LANES
#undef EACH
#if VECTOR_SIZE / SIZE == 16
#define LANES 16
#define EACH EACH16
#elif VECTOR_SIZE / SIZE == 8
#define LANES 8
#define EACH EACH8
#elif VECTOR_SIZE / SIZE == 4
#define LANES 4
#define EACH EACH4
#else
#define LANES 2
#define EACH EACH2
#endif
#undef SHIFTED
#undef LOAD_MASKED
#undef STORE_MASKED
#undef MULTIPLY_ADD
#undef WHOLE
#if SIZE == 4
#define WHOLE int
#else
#define WHOLE long long
#endif

#define V NAME(vector)
typedef REAL V __attribute__((vector_size(VECTOR_SIZE)));
typedef REAL NAME(loose) __attribute__((vector_size(VECTOR_SIZE), aligned(SIZE), may_alias));
typedef WHOLE NAME(lanes) __attribute__((vector_size(VECTOR_SIZE)));

INLINE V NAME(load)(const REAL *from) { return *(const NAME(loose) *)from; }

INLINE void NAME(store)(REAL *to, V value) { *(NAME(loose) *)to = value; }

/* x - 0 is x for every x, NaN and -0 too, and compiles to nothing but the broadcast. */
INLINE V NAME(splat)(REAL x) { return x - (V){0}; }

#undef MASK
#if defined(__AVX2__)
/* Vectors of which only what a mask says is loaded: the rest is zero, and its memory is not touched. Masked stores are slow on many
   machines without AVX-512. */
#define MASK NAME(bits)
#if defined(__AVX512F__) && SIZE == 4
typedef __mmask16 MASK;
#define LOAD_MASKED(from, mask) _mm512_maskz_loadu_ps(mask, from)
#define STORE_MASKED(to, mask, value) _mm512_mask_storeu_ps(to, mask, (__m512)(value))
#elif defined(__AVX512F__)
typedef __mmask8 MASK;
#define LOAD_MASKED(from, mask) _mm512_maskz_loadu_pd(mask, from)
#define STORE_MASKED(to, mask, value) _mm512_mask_storeu_pd(to, mask, (__m512d)(value))
#elif SIZE == 4
typedef __m256i MASK;
#define LOAD_MASKED(from, mask) _mm256_maskload_ps(from, mask)
#else
typedef __m256i MASK;
#define LOAD_MASKED(from, mask) _mm256_maskload_pd(from, mask)
#endif
/* Lanes first to last - 1, of which some may not be there. */
INLINE MASK NAME(mask)(ptrdiff_t first, ptrdiff_t last)
{
    first = first < 0 ? 0 : first > LANES ? LANES : first;
    last = last < first ? first : last > LANES ? LANES : last;
#if defined(__AVX512F__)
    return (MASK)((1u << last) - (1u << first));
#else
    const NAME(lanes) place = {EACH(IDENTITY)}, zero = {0};
    return (MASK)((place >= zero + (WHOLE)first) & (place < zero + (WHOLE)last));
#endif
}
INLINE V NAME(load_masked)(const REAL *from, MASK mask) { return (V)LOAD_MASKED(from, mask); }
#endif

/* Lanes first to last - 1 of the vector at `from`, zeros in the others, whose memory is not touched. */
INLINE V NAME(load_some)(const REAL *from, ptrdiff_t first, ptrdiff_t last)
{
    if (last > LANES)
        last = LANES;
    if (first < 0)
        first = 0;
    if (first >= last)
        return (V){0};
    if (last - first == LANES)
        return NAME(load)(from);
#ifdef MASK
    return NAME(load_masked)(from, NAME(mask)(first, last));
#else
    REAL lanes[LANES] = {0};
    memcpy(lanes + first, from + first, (last - first) * sizeof(REAL));
    return NAME(load)(lanes);
#endif
}

/* Non-temporal store, as fits outputs that are larger than the caches; `to` is aligned to a vector. */
INLINE void NAME(stream)(REAL *to, V value)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)to, (__m512i)value);
#else
    *(V *)to = value;
#endif
}

/* Store the first `count` lanes; nothing where that is not positive, everything where it is more than there are. */
INLINE void NAME(store_first)(REAL *to, V value, ptrdiff_t count)
{
    if (count >= LANES) {
        NAME(store)(to, value);
        return;
    }
    if (count <= 0)
        return;
#if defined(STORE_MASKED)
    STORE_MASKED(to, NAME(mask)(0, count), value);
#elif defined(__AVX2__) /* from its registers; GCC copies by way of the stack, eight bytes at a time */
    const __m256d whole = (__m256d)value;
    __m128d part = _mm256_castpd256_pd128(whole);
    if (count & LANES / 2) {
        _mm_storeu_pd((double *)to, part);
        part = _mm256_extractf128_pd(whole, 1);
        to += LANES / 2;
    }
    if (count & LANES / 4) {
        _mm_storel_pi((__m64 *)to, (__m128)part);
        part = _mm_unpackhi_pd(part, part);
        to += LANES / 4;
    }
    if (LANES == 8 && count & 1)
        _mm_store_ss((float *)to, (__m128)part);
#else
    memcpy(to, &value, count * sizeof(REAL));
#endif
}

/* sum += a * b, rounded once. Left to itself, GCC 12 picks forms that overwrite a factor, and adds moves that cost a fifth. EACH: b is one
   number in memory for all lanes. */
#undef MULTIPLY_ADD_EACH
#if defined(__AVX512F__) && SIZE == 4
#define MULTIPLY_ADD(sum, a, b) __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define MULTIPLY_ADD_EACH(sum, a, b) __asm__("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(a), "m"(b))
#elif defined(__AVX512F__)
#define MULTIPLY_ADD(sum, a, b) __asm__("vfmadd231pd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
#define MULTIPLY_ADD_EACH(sum, a, b) __asm__("vfmadd231pd %2%{1to8%}, %1, %0" : "+v"(sum) : "v"(a), "m"(b))
#else
#define MULTIPLY_ADD(sum, a, b) ((sum) += (a) * (b))
#define MULTIPLY_ADD_EACH(sum, a, b) ((sum) += (a) * (b))
#endif

/* The vector that begins `shift` lanes, a constant, into two neighbours: cheaper than a load across a cache line. */
#if defined(__AVX512F__) && SIZE == 4
#define SHIFTED(low, high, shift) ((V)_mm512_alignr_epi32((__m512i)(high), (__m512i)(low), shift))
#elif defined(__AVX512F__)
#define SHIFTED(low, high, shift) ((V)_mm512_alignr_epi64((__m512i)(high), (__m512i)(low), shift))
#endif

/* Lanes of two vectors, counted through both, as `place` says of each lane of the result. */
#undef CHOOSE
#if defined(__clang__)
#define CHOOSE(low, high, place) __builtin_shufflevector(low, high, EACH(place))
#else
#define CHOOSE(low, high, place) __builtin_shuffle(low, high, (NAME(lanes)){EACH(place)})
#endif

/* Every second element of two neighbours, from the first or the second on. */
#undef EVENS
#undef ODDS
#if defined(__AVX2__) && !defined(__AVX512F__)
/* Of their lower and of their upper halves, side by side, which EVENS and ODDS of the same two have in common; GCC takes ten steps for both, not
   four. */
#define LOWS(low, high) _mm256_permute2f128_pd((__m256d)(low), (__m256d)(high), 0x20)
#define HIGHS(low, high) _mm256_permute2f128_pd((__m256d)(low), (__m256d)(high), 0x31)
#if SIZE == 4
#define EVENS(low, high) ((V)_mm256_shuffle_ps((__m256)LOWS(low, high), (__m256)HIGHS(low, high), 0x88))
#define ODDS(low, high) ((V)_mm256_shuffle_ps((__m256)LOWS(low, high), (__m256)HIGHS(low, high), 0xDD))
#else
#define EVENS(low, high) ((V)_mm256_unpacklo_pd(LOWS(low, high), HIGHS(low, high)))
#define ODDS(low, high) ((V)_mm256_unpackhi_pd(LOWS(low, high), HIGHS(low, high)))
#endif
#else
#define EVEN(j) 2 * (j)
#define ODD(j) 2 * (j) + 1
#define EVENS(low, high) CHOOSE(low, high, EVEN)
#define ODDS(low, high) CHOOSE(low, high, ODD)
#endif

/* One step of a transpose: blocks of `step` lanes change places between rows that lie `step` apart. */
#define SWAP_STEP(step)                                                                                                \
    _Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) if (!(i & step))                                          \
    {                                                                                                                  \
        V low = rows[i], high = rows[i + step];                                                                        \
        rows[i] = CHOOSE(low, high, LOW##step);                                                                        \
        rows[i + step] = CHOOSE(low, high, HIGH##step);                                                                \
    }
#define LOWER(j, step) ((j) & (step) ? LANES + (j) - (step) : (j))
#define HIGHER(j, step) ((j) & (step) ? LANES + (j) : (j) + (step))
#define LOW1(j) LOWER(j, 1)
#define LOW2(j) LOWER(j, 2)
#define LOW4(j) LOWER(j, 4)
#define LOW8(j) LOWER(j, 8)
#define HIGH1(j) HIGHER(j, 1)
#define HIGH2(j) HIGHER(j, 2)
#define HIGH4(j) HIGHER(j, 4)
#define HIGH8(j) HIGHER(j, 8)

/* Transpose LANES vectors in place. */
INLINE void NAME(transpose)(V rows[LANES])
{
#if LANES > 8
    SWAP_STEP(8)
#endif
#if LANES > 4
    SWAP_STEP(4)
#endif
#if LANES > 2
    SWAP_STEP(2)
#endif
    SWAP_STEP(1)
}
#endif
