# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_direct: threads here, sums along rows in _rows.h, _strips.h and _laid.h, across channels in _depthwise.h."""

from impls import checks

cimport openmp
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free


cdef extern from *:
    """
    #include "_scratch.h"
    #include "_shape.h"
    #define REAL float
    #define SIZE 4
    #define NAME(name) name##_float
    #include "_vectors.h"
    #include "_strips.h"
    #include "_rows.h"
    #include "_depthwise.h"
    #undef REAL
    #undef SIZE
    #undef NAME
    #define REAL double
    #define SIZE 8
    #define NAME(name) name##_double
    #include "_vectors.h"
    #include "_strips.h"
    #include "_rows.h"
    #include "_depthwise.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    bint has_strips(const Shape*) nogil
    bint has_several(const Shape*) nogil
    bint has_one_tap(const Shape*, Py_ssize_t) nogil
    void one_tap_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, float*) nogil
    void one_tap_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, double*) nogil
    Py_ssize_t pieces_float(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t pieces_double(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t work_float(const Shape*, Py_ssize_t) nogil
    Py_ssize_t work_double(const Shape*, Py_ssize_t) nogil
    void band_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, float*) nogil
    void band_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, bint, Py_ssize_t*, double*) nogil
    Py_ssize_t depthwise_bands_float(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t depthwise_bands_double(const Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t depthwise_work_float(const Shape*, Py_ssize_t) nogil
    Py_ssize_t depthwise_work_double(const Shape*, Py_ssize_t) nogil
    Py_ssize_t depthwise_weights_float(const Shape*) nogil
    Py_ssize_t depthwise_weights_double(const Shape*) nogil
    void depthwise_transpose_float(const Shape*, const float*, Py_ssize_t, float*) nogil
    void depthwise_transpose_double(const Shape*, const double*, Py_ssize_t, double*) nogil
    void depthwise_float(const Shape*, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float*, float*) nogil
    void depthwise_double(const Shape*, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*) nogil
    void* scratch(size_t) nogil
    Py_ssize_t apart(Py_ssize_t) nogil
    enum:
        VECTOR
        MOST_OUTPUTS
        POWER
        LAID
    const char* INSTRUCTIONS

cdef Py_ssize_t PAST = 8 << 20  # bytes of output, of which caches as they are today keep little
cdef Py_ssize_t WEIGHTS = 1536 << 10  # bytes of weights that strips of an image read again and again, from a cache further away


def instruction_set():
    """What the kernels were compiled for: "avx512", "avx2", "avx", "sse", "neon" or "other"."""
    return INSTRUCTIONS.decode()


VECTOR_BYTES = VECTOR
REGISTERS = 32 if instruction_set() in ("avx512", "neon") else 16  # that hold a vector


def threads():
    """How many threads OpenMP would use now."""
    return openmp.omp_get_max_threads()


def sums_in_strips(Py_ssize_t width, kernel, stride, dilation):
    """Whether rows() has strips for images of one channel of so many columns."""
    cdef Shape g
    g.channels, g.width = 1, width
    (g.taps_y, g.taps_x), (g.stride_y, g.stride_x), (g.dilation_y, g.dilation_x) = kernel, stride, dilation
    return has_strips(&g)


cdef int long_rows(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t images,
    Py_ssize_t groups, Py_ssize_t threads, bint past,
) except -1:
    """Fill the output where images are one long row: has_one_tap. Jobs are strips of some outputs of an image.

    Where there are few, and threads cannot have images of their own, they have outputs of their own, at most: strips are of unlike
    lengths, and each further share of the outputs has their pixels copied once more.
    """
    cdef Py_ssize_t plane = g.out_height * g.out_width, pixels = g.channels * g.height * g.width
    cdef Py_ssize_t tile = (VECTOR << POWER) // sizeof(floating), bytes = g.channels * sizeof(floating)
    cdef Py_ssize_t columns = max(tile, LAID // bytes // tile * tile), strips = (plane + columns - 1) // columns
    cdef Py_ssize_t shares = g.outputs * bytes // WEIGHTS, jobs = images * groups * strips, job, n, k, image, at, begin, end
    cdef Shape share
    if images * groups % threads > 0 and jobs < 4 * threads:
        shares = max(shares, min(threads, (4 * threads + jobs - 1) // jobs))
        if shares > threads:
            shares = (shares + threads - 1) // threads * threads
    shares = max(1, min(shares, g.outputs // MOST_OUTPUTS))
    cdef Py_ssize_t size = apart((plane // strips + tile) * g.channels)
    checks.require_memory(threads * (size * sizeof(floating) + g.channels * sizeof(Py_ssize_t)), "cpu.cython_direct's tiles")
    cdef floating* copies = <floating*> scratch(threads * size * sizeof(floating))
    cdef Py_ssize_t* places = <Py_ssize_t*> scratch(threads * apart(g.channels) * sizeof(Py_ssize_t))
    if copies == NULL or places == NULL:
        free(copies)
        free(places)
        raise MemoryError("cpu.cython_direct's tiles do not fit in memory")
    for job in prange(jobs * shares, nogil=True, schedule="static", num_threads=threads):
        image = job // strips // shares  # of one group
        at = job % strips
        begin = plane * at // strips // tile * tile
        end = plane if at == strips - 1 else plane * (at + 1) // strips // tile * tile
        at = job // strips % shares
        n = image // groups * groups * g.outputs  # output channels before the image's
        k = image % groups * g.outputs + g.outputs * at // shares
        share = g[0]
        share.outputs = g.outputs * (at + 1) // shares - g.outputs * at // shares
        if floating is float:
            one_tap_float(
                &share, input + image * pixels, weight + k * g.channels, bias + k, output + (n + k) * plane, begin, end, past,
                places + threadid() * apart(g.channels), copies + threadid() * size,
            )
        else:
            one_tap_double(
                &share, input + image * pixels, weight + k * g.channels, bias + k, output + (n + k) * plane, begin, end, past,
                places + threadid() * apart(g.channels), copies + threadid() * size,
            )
    free(copies)
    free(places)
    return 0


def rows(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups,
):
    """Fill output (N, K, P, Q); every array C-contiguous and not empty, stride, pad and dilation pairs."""
    cdef Shape g
    g.channels, g.height, g.width = weight.shape[1], input.shape[2], input.shape[3]
    g.outputs, g.out_height, g.out_width = output.shape[1] // groups, output.shape[2], output.shape[3]
    g.taps_y, g.taps_x = weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.top, g.left), (g.dilation_y, g.dilation_x) = stride, pad, dilation
    cdef Py_ssize_t threads = openmp.omp_get_max_threads(), images = output.shape[0] * groups, size, pieces, job, n, k
    cdef bint past = (
        images * g.outputs * g.out_height * g.out_width * sizeof(floating) >= PAST and <size_t> &output[0, 0, 0, 0] % VECTOR == 0
    )
    if has_one_tap(&g, VECTOR // sizeof(floating)):
        long_rows(
            &g, &input[0, 0, 0, 0], &weight[0, 0, 0, 0], &bias[0], &output[0, 0, 0, 0], output.shape[0], groups, threads, past
        )
        return
    if floating is float:
        pieces = pieces_float(&g, threads, images)
        size = work_float(&g, pieces)
    else:
        pieces = pieces_double(&g, threads, images)
        size = work_double(&g, pieces)
    checks.require_memory(threads * size * sizeof(floating), "cpu.cython_direct's padded copies")
    size = apart(size)
    cdef floating* work = <floating*> scratch(threads * size * sizeof(floating))
    cdef Py_ssize_t numbers = g.taps_x * (1 + g.channels * g.taps_y if has_several(&g) else 1)
    cdef Py_ssize_t* offsets = <Py_ssize_t*> scratch(threads * numbers * sizeof(Py_ssize_t))
    try:
        if work == NULL or offsets == NULL:
            raise MemoryError("cpu.cython_direct's padded copies do not fit in memory")
        for job in prange(images * pieces, nogil=True, schedule="static", num_threads=threads):
            n = job // pieces // groups
            k = job // pieces % groups
            if floating is float:
                band_float(
                    &g, &input[n, k * g.channels, 0, 0], &weight[k * g.outputs, 0, 0, 0], &bias[k * g.outputs],
                    &output[n, k * g.outputs, 0, 0], g.out_height * (job % pieces) // pieces,
                    g.out_height * (job % pieces + 1) // pieces, past, offsets + threadid() * numbers, work + threadid() * size,
                )
            else:
                band_double(
                    &g, &input[n, k * g.channels, 0, 0], &weight[k * g.outputs, 0, 0, 0], &bias[k * g.outputs],
                    &output[n, k * g.outputs, 0, 0], g.out_height * (job % pieces) // pieces,
                    g.out_height * (job % pieces + 1) // pieces, past, offsets + threadid() * numbers, work + threadid() * size,
                )
    finally:
        free(work)
        free(offsets)


def channels(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups,
):
    """rows() for as many groups as channels, in vectors of channels."""
    cdef Shape g
    g.channels, g.height, g.width = 1, input.shape[2], input.shape[3]
    g.outputs, g.out_height, g.out_width = 1, output.shape[2], output.shape[3]
    g.taps_y, g.taps_x = weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.top, g.left), (g.dilation_y, g.dilation_x) = stride, pad, dilation
    cdef Py_ssize_t threads = openmp.omp_get_max_threads(), lanes = VECTOR // sizeof(floating), size, area, bands, job, n, c, k, count
    cdef Py_ssize_t blocks = (groups + lanes - 1) // lanes, images = output.shape[0], kept
    if floating is float:
        bands = depthwise_bands_float(&g, threads, images * blocks)
        size = apart(depthwise_work_float(&g, bands))
        area = depthwise_weights_float(&g)
    else:
        bands = depthwise_bands_double(&g, threads, images * blocks)
        size = apart(depthwise_work_double(&g, bands))
        area = depthwise_weights_double(&g)
    kept = blocks if images * bands > 1 else 1  # of whose weights a thread keeps what it transposed
    needed = threads * (size + kept * area) * sizeof(floating)
    checks.require_memory(needed, "cpu.cython_direct's bands and weights of vectors of channels")
    cdef floating* work = <floating*> scratch(threads * size * sizeof(floating))
    cdef floating* weights = <floating*> scratch(threads * kept * area * sizeof(floating))
    cdef Py_ssize_t* held = <Py_ssize_t*> scratch(threads * kept * sizeof(Py_ssize_t))  # the first of their channels, or -1
    cdef floating* factors
    cdef const floating* next
    try:
        if work == NULL or weights == NULL or held == NULL:
            raise MemoryError("cpu.cython_direct's bands and weights of vectors of channels do not fit in memory")
        for k in range(threads * kept):
            held[k] = -1
        for job in prange(images * blocks * bands, nogil=True, schedule="static", num_threads=threads):
            n = job // bands // blocks
            c = job // bands % blocks * lanes
            k = threadid() * kept + c // lanes % kept
            factors = weights + k * area
            count = min(lanes, groups - c)
            next = NULL
            if bands == 1 and job + 1 < images * blocks:
                next = &input[(job + 1) // blocks, (job + 1) % blocks * lanes, 0, 0]
            if floating is float:
                if held[k] != c:
                    depthwise_transpose_float(&g, &weight[c, 0, 0, 0], count, factors)
                depthwise_float(
                    &g, &input[n, c, 0, 0], factors, &bias[c], &output[n, c, 0, 0], count, g.out_height * (job % bands) // bands,
                    g.out_height * (job % bands + 1) // bands, bands, next, work + threadid() * size,
                )
            else:
                if held[k] != c:
                    depthwise_transpose_double(&g, &weight[c, 0, 0, 0], count, factors)
                depthwise_double(
                    &g, &input[n, c, 0, 0], factors, &bias[c], &output[n, c, 0, 0], count, g.out_height * (job % bands) // bands,
                    g.out_height * (job % bands + 1) // bands, bands, next, work + threadid() * size,
                )
            held[k] = c
    finally:
        free(work)
        free(weights)
        free(held)
