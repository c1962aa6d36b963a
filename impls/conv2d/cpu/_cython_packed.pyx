# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_packed: blocks and threads here, the sums in _packed.h."""

import numpy as np

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
    #include "_packed.h"
    #undef REAL
    #undef SIZE
    #undef NAME
    #define REAL double
    #define SIZE 8
    #define NAME(name) name##_double
    #include "_vectors.h"
    #include "_packed.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    Py_ssize_t pieces_of_float(const Shape*) nogil
    Py_ssize_t pieces_of_double(const Shape*) nogil
    void pad_float(const Shape*, const float*, float*, Py_ssize_t, Py_ssize_t) nogil
    void pad_double(const Shape*, const double*, double*, Py_ssize_t, Py_ssize_t) nogil
    void pack_float(const float*, Py_ssize_t, Py_ssize_t, float*) nogil
    void pack_double(const double*, Py_ssize_t, Py_ssize_t, double*) nogil
    void pieces_float(const Shape*, const float*, Py_ssize_t, Py_ssize_t, const Py_ssize_t*, Py_ssize_t, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void pieces_double(const Shape*, const double*, Py_ssize_t, Py_ssize_t, const Py_ssize_t*, Py_ssize_t, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void* scratch(size_t) nogil
    Py_ssize_t apart(Py_ssize_t) nogil
    enum:
        VECTOR

cdef Py_ssize_t WORK = 8 << 20  # bytes of padded images
cdef Py_ssize_t NEAR = 256 << 10  # bytes of padded images that stay in a core's own cache


cdef inline void pack_block(const floating* weight, Py_ssize_t taps, Py_ssize_t outputs, floating* packed) noexcept nogil:
    if floating is float:
        pack_float(weight, taps, outputs, packed)
    else:
        pack_double(weight, taps, outputs, packed)


cdef inline void pad_plane(const Shape* g, const floating* input, floating* padded, Py_ssize_t height, Py_ssize_t width) noexcept nogil:
    if floating is float:
        pad_float(g, input, padded, height, width)
    else:
        pad_double(g, input, padded, height, width)


cdef inline void sum_pieces(
    const Shape* g, const floating* input, Py_ssize_t pitch, Py_ssize_t image, const Py_ssize_t* places, Py_ssize_t taps,
    const floating* packed, const floating* bias, floating* output, Py_ssize_t out_image, Py_ssize_t outputs, Py_ssize_t near,
    Py_ssize_t far,
) noexcept nogil:
    if floating is float:
        pieces_float(g, input, pitch, image, places, taps, packed, bias, output, out_image, outputs, near, far)
    else:
        pieces_double(g, input, pitch, image, places, taps, packed, bias, output, out_image, outputs, near, far)


cdef inline void sum_block(
    const Shape* g, const floating* input, Py_ssize_t pitch, Py_ssize_t image, const Py_ssize_t* places, Py_ssize_t taps,
    const floating* weight, const floating* packed, floating* work, const floating* bias, floating* output, Py_ssize_t out_image,
    Py_ssize_t outputs, Py_ssize_t near, Py_ssize_t far,
) noexcept nogil:
    """sum_pieces() of the block of output channels that begins here, `outputs` of which are left; packed: or NULL, to pack now."""
    cdef Py_ssize_t pair = 2 * VECTOR // sizeof(floating)
    if packed == NULL:
        pack_block(weight, taps, outputs, work)
        packed = work
    sum_pieces(g, input, pitch, image, places, taps, packed, bias, output, out_image, min(pair, outputs), near, far)


def pack(const floating[:, :, :, ::1] weight, Py_ssize_t groups):
    """The weight (K, C/g, R, S) as (g, blocks, C/g R S, channels of a block), both rounded up."""
    cdef Py_ssize_t lanes = VECTOR // sizeof(floating), taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
    cdef Py_ssize_t outputs = weight.shape[0] // groups, blocks = (outputs + 2 * lanes - 1) // (2 * lanes), job, k
    cdef floating[:, :, ::1] packed = np.empty(
        (groups * blocks, (taps + lanes - 1) // lanes * lanes, 2 * lanes), np.asarray(weight).dtype
    )
    for job in prange(groups * blocks, nogil=True, schedule="static"):
        k = job // blocks * outputs + job % blocks * 2 * lanes
        pack_block(&weight[k, 0, 0, 0], taps, outputs - job % blocks * 2 * lanes, &packed[job, 0, 0])
    return np.asarray(packed)


def conv2d(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups, const floating[:, :, ::1] packed=None,
):
    """Fill output (N, K, P, Q); every array C-contiguous and not empty, stride, pad and dilation pairs.

    packed: what pack(weight, groups) returned, where that was done before. Raises MemoryError where the work does not fit.
    """
    cdef Shape g
    g.channels, g.height, g.width = weight.shape[1], input.shape[2], input.shape[3]
    g.outputs, g.out_height, g.out_width = output.shape[1] // groups, output.shape[2], output.shape[3]
    g.taps_y, g.taps_x = weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.top, g.left), (g.dilation_y, g.dilation_x) = stride, pad, dilation
    cdef Py_ssize_t threads = openmp.omp_get_max_threads(), lanes = VECTOR // sizeof(floating), pair = 2 * lanes
    cdef Py_ssize_t taps = g.channels * g.taps_y * g.taps_x, images = input.shape[0], image = output.shape[1] * g.out_height * g.out_width
    cdef Py_ssize_t height = (g.out_height - 1) * g.stride_y + (g.taps_y - 1) * g.dilation_y + 1
    cdef Py_ssize_t width = (g.out_width - 1) * g.stride_x + (g.taps_x - 1) * g.dilation_x + 1
    cdef bint padded = g.top > 0 or g.left > 0 or height > g.height or width > g.width, ready = packed is not None
    # Threads that each have groups or images of their own need not wait for each other, nor read what another has padded, which
    # takes up to four times as long where their caches are far apart; where there are too few of either, they share one.
    cdef bint own = groups * images >= 4 * threads or groups * images % threads == 0
    cdef Py_ssize_t plane, first, count, most, jobs, blocks, block, cuts, group, job, k, n, i, near, far, mine, seen, factors_size
    cdef floating* copies
    cdef floating* work
    cdef const floating* source
    if g.taps_y == g.taps_x == g.stride_y == g.stride_x == 1 and not padded:
        # Each output sees one place: an image is then one long row.
        g.height, g.width, g.out_height, g.out_width = 1, g.height * g.width, 1, g.out_height * g.out_width
        height, width = g.height, g.width
    if not padded:
        height, width = g.height, g.width
    plane = height * width
    most = images
    if groups == 1:  # each packs the weights for itself then: one block of outputs is soon packed, or two
        own = own and threads > 1 and padded and g.outputs <= 2 * pair
    if own:
        # As many images at a time as the cache holds, but not so many that a thread has none.
        most = min(max(1, NEAR // (g.channels * plane * sizeof(floating))), max(1, groups * images // (4 * threads)), images)
    elif padded:
        most = min(images, max(1, WORK // (g.channels * plane * sizeof(floating))))
    mine = most * g.channels * plane if padded else 0  # numbers of padded images, of each thread where they are its own
    factors_size = 0 if ready else (taps + lanes) * pair
    checks.require_memory(
        (mine * (threads if own else 1) + threads * factors_size) * sizeof(floating) + input.nbytes + output.nbytes,
        "cpu.cython_packed's padded images and packed weights",
    )
    seen = (g.channels if padded else input.shape[1]) * plane  # from an image to the next
    jobs = pieces_of_float(&g) if floating is float else pieces_of_double(&g)
    blocks = (g.outputs + pair - 1) // pair
    cdef Py_ssize_t* places = <Py_ssize_t*> scratch(taps * sizeof(Py_ssize_t))
    mine = apart(mine)
    copies = <floating*> scratch(mine * (threads if own else 1) * sizeof(floating))
    work = <floating*> scratch(threads * factors_size * sizeof(floating))
    try:
        if places == NULL or copies == NULL or work == NULL:
            raise MemoryError("cpu.cython_packed's padded images and packed weights do not fit in memory")
        for i in range(taps):
            k = i // (g.taps_y * g.taps_x)
            places[i] = k * plane + i // g.taps_x % g.taps_y * g.dilation_y * width + i % g.taps_x * g.dilation_x
        if own:
            cuts = (images + most - 1) // most
            for job in prange(groups * cuts, nogil=True, schedule="dynamic", num_threads=threads):
                group = job // cuts
                first = job % cuts * most
                count = min(most, images - first)
                source = &input[first, group * g.channels, 0, 0]
                if padded:
                    for i in range(count * g.channels):
                        pad_plane(
                            &g, &input[first + i // g.channels, group * g.channels + i % g.channels, 0, 0],
                            copies + threadid() * mine + i * plane, height, width,
                        )
                    source = copies + threadid() * mine
                for block in range(blocks):
                    k = group * g.outputs + block * pair
                    sum_block(
                        &g, source, width, seen, places, taps, &weight[k, 0, 0, 0],
                        &packed[group * blocks + block, 0, 0] if ready else NULL, work + threadid() * factors_size, &bias[k],
                        &output[first, k, 0, 0], image, g.outputs - block * pair, 0, count * jobs,
                    )
            return
        for group in range(groups):
            for first in range(0, images, most):
                count = min(most, images - first)
                source = &input[first, group * g.channels, 0, 0]
                if padded:
                    for job in prange(count * g.channels, nogil=True, schedule="static", num_threads=threads):
                        pad_plane(
                            &g, &input[first + job // g.channels, group * g.channels + job % g.channels, 0, 0],
                            copies + job * plane, height, width,
                        )
                    source = copies
                # A block of output channels, cut where there are too few of them for the threads.
                cuts = max(1, min(count * jobs, (2 * threads + blocks - 1) // blocks if threads > 1 else 1))
                for job in prange(blocks * cuts, nogil=True, schedule="dynamic", num_threads=threads):
                    block = job // cuts
                    k = group * g.outputs + block * pair
                    sum_block(
                        &g, source, width, seen, places, taps, &weight[k, 0, 0, 0],
                        &packed[group * blocks + block, 0, 0] if ready else NULL, work + threadid() * factors_size, &bias[k],
                        &output[first, k, 0, 0], image, g.outputs - block * pair, count * jobs * (job % cuts) // cuts,
                        count * jobs * (job % cuts + 1) // cuts,
                    )
    finally:
        free(places)
        free(copies)
        free(work)
