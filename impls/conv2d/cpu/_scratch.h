/* Memory for a kernel's own use, from a cache line's begin: as an array of NumPy's it would take as long as a small convolution. */
#pragma once

#include "_machine.h"
#include <stdlib.h>

/* So many bytes, to be given back by free(); NULL where there are not so many. */
static void *scratch(size_t bytes)
{
    return aligned_alloc(CACHE_LINE_BYTES, (bytes / CACHE_LINE_BYTES + 1) * CACHE_LINE_BYTES);
}

/* So many elements rounded up to whole cache lines, so that threads whose elements lie one after the other share none. */
static ptrdiff_t whole_lines(ptrdiff_t count) { return (count + 15) / 16 * 16; }
