# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_direct: threads here, sums along rows in _rows.h, 1x1 layers in _pointwise.h, across channels in _depthwise.h."""

import numpy as np

from impls import checks

cimport openmp
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBuffer_Release, PyObject_GetBuffer
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdlib cimport calloc, free
from libc.string cimport memset


empty, FLOAT, DOUBLE = np.empty, np.dtype(np.float32), np.dtype(np.float64)
cdef Py_ssize_t UNASKED = checks.UNASKED


cdef inline int require_memory(Py_ssize_t count, what) except -1:
    """checks.require_memory(), called where it would look at free memory: a call of Python's takes as long as a tile."""
    return checks.require_memory(count, what) or 0 if count > UNASKED else 0


def instruction_set():
    """What the kernels were compiled for: "avx512", "avx2", "avx", "neon" or "baseline"."""
    return INSTRUCTIONS.decode()


VECTOR_BYTES = VECTOR_SIZE
REGISTERS = VECTOR_REGISTERS  # that hold a vector


def threads():
    """How many threads OpenMP would use now."""
    return openmp.omp_get_max_threads()


def sums_in_strips(Py_ssize_t width, kernel, stride, dilation):
    """Whether rows() has strips for images of one channel of so many columns."""
    cdef Shape g
    g.channels, g.width = 1, width
    (g.taps_y, g.taps_x), (g.stride_y, g.stride_x), (g.dilation_y, g.dilation_x) = kernel, stride, dilation
    return has_strips(&g)


cdef inline Py_ssize_t take_share(Shape* g, Py_ssize_t shares, Py_ssize_t job) noexcept nogil:
    """Make g share job % shares of the outputs of group job // shares; return its first output, counted through all groups."""
    cdef Py_ssize_t outputs = g.outputs, at = job % shares
    g.outputs = outputs * (at + 1) // shares - outputs * at // shares
    return job // shares * outputs + outputs * at // shares


cdef inline void strip(
    const Shape* g, const floating* input, const floating* weight, bint packed, const floating* bias, floating* output,
    Py_ssize_t groups, Py_ssize_t strips, Py_ssize_t shares, Py_ssize_t job, bint streamed, bint uncached, Py_ssize_t* places, floating* copies,
) noexcept nogil:
    """Strip job % strips of share job // strips % shares of the outputs, of a group of an image, the one of number job // strips // shares."""
    cdef Py_ssize_t plane = g.out_height * g.out_width, tile = (VECTOR_SIZE << TILE_LOG2_VECTORS) // sizeof(floating)
    cdef Py_ssize_t image = job // strips // shares, at = job % strips, k, begin, end
    cdef Shape share = g[0]
    begin = plane * at // strips // tile * tile
    end = plane if at == strips - 1 else plane * (at + 1) // strips // tile * tile
    k = take_share(&share, shares, job // strips % (shares * groups))
    input += image * g.channels * g.height * g.width
    weight += k * g.channels
    output += (image // groups * groups * g.outputs + k) * plane
    if floating is float:
        if packed:
            pointwise_packed_float(&share, input, weight, bias + k, output, begin, end, streamed, copies)
        else:
            pointwise_float(&share, input, weight, bias + k, output, begin, end, streamed, uncached, places, copies)
    else:
        if packed:
            pointwise_packed_double(&share, input, weight, bias + k, output, begin, end, streamed, copies)
        else:
            pointwise_double(&share, input, weight, bias + k, output, begin, end, streamed, uncached, places, copies)


cdef inline void pack(const Shape* g, const floating* weight, floating* packed, Py_ssize_t shares, Py_ssize_t job) noexcept nogil:
    """The weights of share job % shares of the outputs of group job // shares, as columns() reads them."""
    cdef Shape share = g[0]
    cdef Py_ssize_t k = take_share(&share, shares, job)
    if floating is float:
        pack_pointwise_float(&share, weight + k * g.channels, packed + k * g.channels)
    else:
        pack_pointwise_double(&share, weight + k * g.channels, packed + k * g.channels)


cdef int long_rows(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t images,
    Py_ssize_t groups, Py_ssize_t threads, bint streamed,
) except -1:
    """Fill the output where images are one long row: is_pointwise. Jobs are strips of some outputs of an image.

    Where there are few, and threads cannot have images of their own, they have outputs of their own, at most: strips are of unlike
    lengths, and each further share of the outputs has their pixels copied once more.
    """
    cdef Py_ssize_t plane = g.out_height * g.out_width, tile = (VECTOR_SIZE << TILE_LOG2_VECTORS) // sizeof(floating), some = pointwise_channels(g)
    cdef Py_ssize_t columns = max(tile, IM2COL_TILES_BYTES // (some * sizeof(floating)) // tile * tile), strips = (plane + columns - 1) // columns
    cdef Py_ssize_t shares = g.outputs * g.channels * sizeof(floating) // MAX_SHARE_WEIGHT_BYTES, jobs = images * groups * strips, job
    if images * groups % threads > 0 and jobs < 4 * threads:
        shares = max(shares, min(threads, (4 * threads + jobs - 1) // jobs))
        if shares > threads:
            shares = (shares + threads - 1) // threads * threads
    shares = max(1, min(shares, g.outputs // MAX_TILE_OUTPUTS))
    cdef bint uncached = images * groups * g.channels * g.height * g.width * sizeof(floating) > MAX_CACHED_BATCH_BYTES
    cdef bint packed = packs_weights(g, images, uncached, threads == 1), copied = copies_pixels(g) if packed else True
    cdef Py_ssize_t size = whole_lines((plane // strips + tile) * some) * copied
    cdef Py_ssize_t weights = whole_lines(groups * g.outputs * g.channels) * packed
    cdef Py_ssize_t numbers = 0 if packed else threads * whole_lines(some)
    require_memory(
        (threads * size + weights) * sizeof(floating) + numbers * sizeof(Py_ssize_t), "cpu.cython_direct's tiles and weights"
    )
    cdef floating* copies = <floating*> scratch((threads * size + weights) * sizeof(floating))
    cdef Py_ssize_t* places = <Py_ssize_t*> scratch(numbers * sizeof(Py_ssize_t)) if numbers else NULL
    if copies == NULL or (places == NULL and numbers):
        free(copies)
        free(places)
        raise MemoryError("cpu.cython_direct's tiles and weights do not fit in memory")
    cdef const floating* read = weight
    if packed:
        read = copies
    if threads == 1:  # OpenMP for one thread would take as long as a small layer
        with nogil:
            for job in range(groups * shares * packed):
                pack(g, weight, copies, shares, job)
            for job in range(jobs * shares):
                strip(g, input, read, packed, bias, output, groups, strips, shares, job, streamed, uncached, places, copies + weights)
    else:
        # Each thread what it sums, mostly: from another core's cache weights take longer to come than to be packed.
        for job in prange(groups * shares * packed, nogil=True, schedule="static", num_threads=min(threads, groups * shares)):
            pack(g, weight, copies, shares, job)
        for job in prange(jobs * shares, nogil=True, schedule="static", num_threads=threads):
            strip(
                g, input, read, packed, bias, output, groups, strips, shares, job, streamed, uncached, places + threadid() * whole_lines(some),
                copies + weights + threadid() * size,
            )
    free(copies)
    free(places)
    return 0


cdef inline void plane_strip(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t groups,
    Py_ssize_t strips, Py_ssize_t job, bint streamed,
) noexcept nogil:
    """Strip job % strips of a group of an image, the one of number job // strips, of whole blocks."""
    cdef Py_ssize_t plane = g.height * g.width, block = PLANE_BLOCK_BYTES // sizeof(floating), blocks = (plane + block - 1) // block
    cdef Py_ssize_t image = job // strips, at = job % strips, k = image % groups * g.outputs
    cdef Py_ssize_t begin = blocks * at // strips * block, end = min(plane, blocks * (at + 1) // strips * block)
    input += image * g.channels * plane
    weight += k * g.channels
    output += image * g.outputs * plane
    if floating is float:
        plane_sums_float(g, input, weight, bias + k, output, begin, end, streamed)
    else:
        plane_sums_double(g, input, weight, bias + k, output, begin, end, streamed)


cdef void sum_all_planes(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t images,
    Py_ssize_t groups, Py_ssize_t threads, bint streamed,
) noexcept nogil:
    """Fill the output where it is sums_planes; images: of all groups."""
    cdef Py_ssize_t strips = 1 if images % threads == 0 or images >= 8 * threads else threads, job
    if threads == 1:
        for job in range(images):
            plane_strip(g, input, weight, bias, output, groups, 1, job, streamed)
    else:
        for job in prange(images * strips, schedule="static", num_threads=threads):
            plane_strip(g, input, weight, bias, output, groups, strips, job, streamed)


cdef inline void band(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t groups,
    Py_ssize_t pieces, Py_ssize_t shares, Py_ssize_t job, bint streamed, Py_ssize_t* offsets, floating* work,
) noexcept nogil:
    """Piece job % pieces of share job // pieces % shares of the outputs, of a group of an image, the one of number job // pieces // shares."""
    cdef Py_ssize_t image = job // pieces // shares, at = job % pieces, k
    cdef Py_ssize_t first = g.out_height * at // pieces, last = g.out_height * (at + 1) // pieces
    cdef Shape share = g[0]
    k = take_share(&share, shares, job // pieces % (shares * groups))
    input += image * g.channels * g.height * g.width
    weight += k * g.channels * g.taps_y * g.taps_x
    output += (image // groups * groups * g.outputs + k) * g.out_height * g.out_width
    if floating is float:
        band_float(&share, input, weight, bias + k, output, first, last, streamed, offsets, work)
    else:
        band_double(&share, input, weight, bias + k, output, first, last, streamed, offsets, work)


cdef int along_rows(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t batch,
    Py_ssize_t groups,
) except -1:
    """Fill the output of so many images: of a group of each, g."""
    cdef Py_ssize_t images = batch * groups, threads = useful_threads(g, images, openmp.omp_get_max_threads(), VECTOR_SIZE), size, pieces, job
    cdef Py_ssize_t shares = 1
    cdef bint streamed = (
        images * g.outputs * g.out_height * g.out_width * sizeof(floating) >= MIN_STREAMED_BYTES and <size_t> output % VECTOR_SIZE == 0
    )
    if sums_planes(g):
        with nogil:
            sum_all_planes(g, input, weight, bias, output, images, groups, threads, streamed)
        return 0
    if is_pointwise(g, VECTOR_SIZE // sizeof(floating)):
        return long_rows(g, input, weight, bias, output, batch, groups, threads, streamed)
    if floating is float:
        pieces = pieces_float(g, threads, images)
        size = work_float(g, pieces)
    else:
        pieces = pieces_double(g, threads, images)
        size = work_double(g, pieces)
    # Where rows are too few for the threads, these have outputs of their own, so many that copying rows once more takes less.
    if images * pieces % threads > 0 and images * pieces < 4 * threads:
        shares = max(1, min(threads, g.outputs // MIN_SHARE_OUTPUTS))
    require_memory(threads * size * sizeof(floating), "cpu.cython_direct's padded copies")
    size = whole_lines(size)
    cdef floating* work = <floating*> scratch(threads * size * sizeof(floating))
    cdef Py_ssize_t numbers = g.taps_x * (1 + g.channels * g.taps_y if is_multi_output(g) else 1)
    cdef Py_ssize_t* offsets = <Py_ssize_t*> scratch(threads * numbers * sizeof(Py_ssize_t))
    if work == NULL or offsets == NULL:
        free(work)
        free(offsets)
        raise MemoryError("cpu.cython_direct's padded copies do not fit in memory")
    if threads == 1:
        with nogil:
            for job in range(images * pieces):
                band(g, input, weight, bias, output, groups, pieces, 1, job, streamed, offsets, work)
    else:
        for job in prange(images * pieces * shares, nogil=True, schedule="static", num_threads=threads):
            band(
                g, input, weight, bias, output, groups, pieces, shares, job, streamed, offsets + threadid() * numbers,
                work + threadid() * size,
            )
    free(work)
    free(offsets)
    return 0


cdef int across_channels(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t images,
    Py_ssize_t groups,
) except -1:
    """along_rows() for groups of one channel and one output, in vectors of channels."""
    cdef Py_ssize_t threads = useful_threads(g, images * groups, openmp.omp_get_max_threads(), VECTOR_SIZE), lanes = VECTOR_SIZE // sizeof(floating)
    cdef Py_ssize_t size, area, bands, job, n, c, k, count
    cdef Py_ssize_t blocks = (groups + lanes - 1) // lanes, kept
    cdef Py_ssize_t taps = g.taps_y * g.taps_x, seen = g.height * g.width, plane = g.out_height * g.out_width  # of a channel
    if floating is float:
        bands = depthwise_bands_float(g, threads, images * blocks)
        size = whole_lines(depthwise_work_float(g, bands))
        area = depthwise_weights_float(g)
    else:
        bands = depthwise_bands_double(g, threads, images * blocks)
        size = whole_lines(depthwise_work_double(g, bands))
        area = depthwise_weights_double(g)
    kept = blocks if images * bands > 1 else 1  # of whose weights a thread keeps what it transposed
    needed = threads * (size + kept * area) * sizeof(floating)
    require_memory(needed, "cpu.cython_direct's bands and weights of vectors of channels")
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
                next = input + ((job + 1) // blocks * groups + (job + 1) % blocks * lanes) * seen
            if floating is float:
                if held[k] != c:
                    depthwise_transpose_float(g, weight + c * taps, count, factors)
                depthwise_float(
                    g, input + (n * groups + c) * seen, factors, bias + c, output + (n * groups + c) * plane, count,
                    g.out_height * (job % bands) // bands, g.out_height * (job % bands + 1) // bands, bands, next,
                    work + threadid() * size,
                )
            else:
                if held[k] != c:
                    depthwise_transpose_double(g, weight + c * taps, count, factors)
                depthwise_double(
                    g, input + (n * groups + c) * seen, factors, bias + c, output + (n * groups + c) * plane, count,
                    g.out_height * (job % bands) // bands, g.out_height * (job % bands + 1) // bands, bands, next,
                    work + threadid() * size,
                )
            held[k] = c
    finally:
        free(work)
        free(weights)
        free(held)
    return 0


cdef Shape shape_of(const Py_ssize_t* input, const Py_ssize_t* weight, stride, dilation, Py_ssize_t groups):
    """What is summed for a group of an image, but for the padding and the output's size."""
    cdef Shape g
    g.channels, g.height, g.width = weight[1], input[2], input[3]
    g.outputs, g.taps_y, g.taps_x = weight[0] // groups, weight[2], weight[3]
    (g.stride_y, g.stride_x), (g.dilation_y, g.dilation_x) = stride, dilation
    return g


cdef aligned(shape, dtype):
    """np.empty that, from 1 MB on, begins at a cache line: a vector stored across two of them takes twice as long."""
    cdef Py_ssize_t count = shape[0] * shape[1] * shape[2] * shape[3], size = dtype.itemsize
    if count * size < 1 << 20:
        return empty(shape, dtype)
    memory = empty(count + 64 // size, dtype)
    cdef Py_ssize_t first = -memory.ctypes.data % 64 // size
    return memory[first : first + count].reshape(shape)


cdef int fill(
    const Shape* g, const floating* input, const floating* weight, const floating* bias, floating* output, Py_ssize_t batch,
    Py_ssize_t groups, bint across,
) except -1:
    """Fill the output of so many images, along rows or across channels; bias may be NULL."""
    cdef floating* zeros = NULL
    if bias == NULL:
        zeros = <floating*> calloc(groups * g.outputs, sizeof(floating))
        if zeros == NULL:
            raise MemoryError("cpu.cython_direct's zeros for a bias do not fit in memory")
        bias = zeros
    try:
        if across:
            return across_channels(g, input, weight, bias, output, batch, groups)
        return along_rows(g, input, weight, bias, output, batch, groups)
    finally:
        free(zeros)


def conv2d(input, weight, bias, stride, padding, dilation, Py_ssize_t groups, bint across, out=None):
    """Return the output (N, K, P, Q), `out` if it is given: every array C-contiguous, all float32 or float64, bias may be None, settings in their one form.

    across: in vectors of channels, of which each is a group. Calls of Python's and typed memoryviews, which are objects too, would
    take as long as a small layer: there are few.
    """
    cdef Shape g
    cdef Py_ssize_t below, right
    cdef Py_buffer x, w, b, y
    memset(&x, 0, sizeof(x))  # which releases nothing
    w = b = y = x
    try:
        PyObject_GetBuffer(input, &x, PyBUF_C_CONTIGUOUS)
        PyObject_GetBuffer(weight, &w, PyBUF_C_CONTIGUOUS)
        if bias is not None:
            PyObject_GetBuffer(bias, &b, PyBUF_C_CONTIGUOUS)
        g = shape_of(x.shape, w.shape, stride, dilation, groups)
        (g.top, below), (g.left, right) = padding
        size_output(&g, below, right)
        if out is None:
            out = aligned((x.shape[0], w.shape[0], g.out_height, g.out_width), FLOAT if x.itemsize == sizeof(float) else DOUBLE)
        PyObject_GetBuffer(out, &y, PyBUF_C_CONTIGUOUS)
        if x.shape[0] == 0:
            return out
        if x.itemsize == sizeof(float):
            fill[float](&g, <float*> x.buf, <float*> w.buf, <float*> b.buf, <float*> y.buf, x.shape[0], groups, across)
        else:
            fill[double](&g, <double*> x.buf, <double*> w.buf, <double*> b.buf, <double*> y.buf, x.shape[0], groups, across)
        return out
    finally:
        PyBuffer_Release(&x)
        PyBuffer_Release(&w)
        PyBuffer_Release(&b)
        PyBuffer_Release(&y)


def rows(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups,
):
    """Fill output (N, K, P, Q), along rows; every array C-contiguous and not empty, stride, pad and dilation pairs."""
    cdef Shape g = shape_of(input.shape, weight.shape, stride, dilation, groups)
    g.top, g.left = pad
    g.out_height, g.out_width = output.shape[2], output.shape[3]
    along_rows(&g, &input[0, 0, 0, 0], &weight[0, 0, 0, 0], &bias[0], &output[0, 0, 0, 0], input.shape[0], groups)

