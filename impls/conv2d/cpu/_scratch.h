/* Memory for a kernel's own use, from a cache line's begin: as an array of NumPy's it would take as long as a small convolution. */
#ifndef CONVBENCH_SCRATCH
#define CONVBENCH_SCRATCH
#include <stddef.h>
#include <stdlib.h>

/* So many bytes, to be given back by free(); NULL where there are not so many. */
static void *scratch(size_t bytes)
{
    return aligned_alloc(64, (bytes / 64 + 1) * 64);
}

/* So many numbers and a few more, lest the next thread's, which lie behind them, share a cache line with them. */
static ptrdiff_t apart(ptrdiff_t count) { return (count + 15) / 16 * 16; }
#endif
