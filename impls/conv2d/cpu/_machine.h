/* The machine that the kernels are compiled for: its vectors, registers and caches. GCC's extensions (also clang's). */
#pragma once

#include <stddef.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

/* VECTOR_SIZE: bytes of a vector. REGISTERS: registers that hold one. */
#if defined(__AVX512F__)
#define VECTOR_SIZE 64
#define INSTRUCTIONS "avx512"
#elif defined(__AVX2__)
#define VECTOR_SIZE 32
#define INSTRUCTIONS "avx2"
#elif defined(__AVX__)
#define VECTOR_SIZE 32
#define INSTRUCTIONS "avx"
#elif defined(__aarch64__)
#define VECTOR_SIZE 16
#define INSTRUCTIONS "neon"
#else
#define VECTOR_SIZE 16
#define INSTRUCTIONS "baseline"
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
#define REGISTERS 32
#else
#define REGISTERS 16
#endif

#define CACHE_LINE_BYTES 64 /* which come together */
#define PAGE_BYTES 4096     /* addresses so far apart, or a multiple of it, take each other's place in all caches */

#define INLINE static inline __attribute__((always_inline))
/* Keeps a value in a register where GCC would load it again for each use, or move the loads so far ahead that it spills. */
#if defined(__x86_64__)
#define KEEP(value) __asm__("" : "+v"(value))
#define KEEP_POINTER(p) __asm__("" : "+r"(p))
#else
#define KEEP(value) (void)(value)
#define KEEP_POINTER(p) (void)(p)
#endif
/* Has GCC read memory again, where it would rather keep more weights than there are registers. */
#define FORGET __asm__ volatile("" ::: "memory")
