# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_packed: blocks and threads here, what is summed together in _pieces.h, the sums in _packed.h."""

import numpy as np

from impls import checks

cimport openmp
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free
from libc.string cimport memset


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
    void size_output(Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t team(const Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    ctypedef struct Plan:
        bint copied, tiled, sides, own
        Py_ssize_t height, width, step_y, step_x, images, bands
    ctypedef struct Tap:
        Py_ssize_t place, column
    Plan plan_of(Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t blocks_of(Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t room_of(Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t pieces_of(const Shape*) nogil
    Py_ssize_t tile_of(const Shape*) nogil
    void rows_seen(const Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t*, Py_ssize_t*) nogil
    void pad_float(const Shape*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void pad_double(const Shape*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void tile_float(const Shape*, const float*, float*, Py_ssize_t, Py_ssize_t) nogil
    void tile_double(const Shape*, const double*, double*, Py_ssize_t, Py_ssize_t) nogil
    void pack_float(const float*, Py_ssize_t, Py_ssize_t, float*) nogil
    void pack_double(const double*, Py_ssize_t, Py_ssize_t, double*) nogil
    void pieces_float(const Shape*, const Plan*, const float*, Py_ssize_t, const Tap*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void pieces_double(const Shape*, const Plan*, const double*, Py_ssize_t, const Tap*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void* scratch(size_t) nogil
    Py_ssize_t apart(Py_ssize_t) nogil
    enum:
        VECTOR
        PITCH
        CHUNK
        MOST


empty, FLOAT, DOUBLE = np.empty, np.dtype(np.float32), np.dtype(np.float64)


cdef inline void pack_block(const floating* weight, Py_ssize_t taps, Py_ssize_t outputs, floating* packed) noexcept nogil:
    if floating is float:
        pack_float(weight, taps, outputs, packed)
    else:
        pack_double(weight, taps, outputs, packed)


cdef inline void pad_plane(
    const Shape* g, const floating* input, floating* padded, Py_ssize_t width, Py_ssize_t first, Py_ssize_t last,
    Py_ssize_t step_y, Py_ssize_t step_x,
) noexcept nogil:
    if floating is float:
        pad_float(g, input, padded, width, first, last, step_y, step_x)
    else:
        pad_double(g, input, padded, width, first, last, step_y, step_x)


cdef inline void tile_pieces(
    const Shape* g, const floating* input, floating* tiles, Py_ssize_t first, Py_ssize_t last
) noexcept nogil:
    if floating is float:
        tile_float(g, input, tiles, first, last)
    else:
        tile_double(g, input, tiles, first, last)


cdef inline void sum_pieces(
    const Shape* g, const Plan* plan, const floating* input, Py_ssize_t image, const Tap* seen, const floating* packed,
    const floating* bias, floating* output, Py_ssize_t out_image, Py_ssize_t outputs, Py_ssize_t near, Py_ssize_t far,
) noexcept nogil:
    if floating is float:
        pieces_float(g, plan, input, image, seen, packed, bias, output, out_image, outputs, near, far)
    else:
        pieces_double(g, plan, input, image, seen, packed, bias, output, out_image, outputs, near, far)


cdef inline Py_ssize_t rounded_up(Py_ssize_t taps, Py_ssize_t lanes) noexcept nogil:
    """Taps that a channel's packed weights have room for."""
    return (taps + lanes - 1) // lanes * lanes


cdef inline Py_ssize_t outputs_of(Py_ssize_t outputs, Py_ssize_t block, Py_ssize_t blocks, Py_ssize_t pair) noexcept nogil:
    """Output channels of a block: two vectors or, in the last of a group, what is left."""
    return outputs - block * pair if block == blocks - 1 else pair


def pack(const floating[:, :, :, ::1] weight, Py_ssize_t groups):
    """The weight (K, C/g, R, S) as (g, K/g C/g R S), block after block of output channels, numbers of both rounded up."""
    cdef Py_ssize_t lanes = VECTOR // sizeof(floating), taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
    cdef Py_ssize_t outputs = weight.shape[0] // groups, blocks = blocks_of(outputs, lanes), job, block
    cdef Py_ssize_t rounded = rounded_up(taps, lanes)
    cdef floating[:, ::1] packed = np.empty(
        (groups, room_of(outputs, lanes) * rounded), np.float32 if floating is float else np.float64
    )
    for job in prange(groups * blocks, nogil=True, schedule="static"):
        block = job % blocks
        pack_block(
            &weight[job // blocks * outputs + block * 2 * lanes, 0, 0, 0], taps, outputs_of(outputs, block, blocks, 2 * lanes),
            &packed[job // blocks, block * rounded * 2 * lanes],
        )
    return np.asarray(packed)


cdef inline void sum_cut(
    const Shape* g, const Plan* plan, const floating* input, Py_ssize_t image, const Tap* seen, const floating* weight,
    const floating* packed, floating* work, const floating* bias, floating* output, Py_ssize_t out_image, Py_ssize_t pieces,
    Py_ssize_t cuts, Py_ssize_t job,
) noexcept nogil:
    """Sum a block of output channels of a group, the one of number job // cuts, and of its pieces the share job % cuts.

    packed: the group's packed weights, or NULL where the block's are to be packed into work.
    """
    cdef Py_ssize_t lanes = VECTOR // sizeof(floating), taps = g.channels * g.taps_y * g.taps_x, k = job // cuts * 2 * lanes
    cdef Py_ssize_t outputs = outputs_of(g.outputs, job // cuts, blocks_of(g.outputs, lanes), 2 * lanes)
    cdef const floating* factors = work
    if packed == NULL:
        pack_block(weight + k * taps, taps, outputs, work)
    else:
        factors = packed + k * rounded_up(taps, lanes)
    sum_pieces(
        g, plan, input, image, seen, factors, bias + k, output + k * g.out_height * g.out_width, out_image, outputs,
        pieces * (job % cuts) // cuts, pieces * (job % cuts + 1) // cuts,
    )


def conv2d(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias, stride, padding, dilation,
    Py_ssize_t groups, const floating[:, ::1] packed=None,
):
    """Return the output (N, K, P, Q): every array C-contiguous, bias may be None, settings in their one form.

    packed: what pack(weight, groups) returned, where that was done before. Raises MemoryError where the work does not fit.
    Calls of Python's, and a team of threads though it is one, would take as long as a small 1x1 layer: there are few of them.
    """
    cdef Shape g, seen  # what is summed, and what the images are that are copied for it
    cdef Py_ssize_t below, right
    g.channels, g.height, g.width = weight.shape[1], input.shape[2], input.shape[3]
    g.outputs, g.taps_y, g.taps_x = weight.shape[0] // groups, weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.dilation_y, g.dilation_x) = stride, dilation
    (g.top, below), (g.left, right) = padding
    size_output(&g, below, right)
    filled = empty((input.shape[0], weight.shape[0], g.out_height, g.out_width), FLOAT if floating is float else DOUBLE)
    if input.shape[0] == 0:
        return filled
    cdef floating[:, :, :, ::1] output = filled
    seen = g
    cdef Py_ssize_t images = input.shape[0], threads = team(&g, images * groups, openmp.omp_get_max_threads(), VECTOR)
    cdef Py_ssize_t lanes = VECTOR // sizeof(floating), pair = 2 * lanes, taps = g.channels * g.taps_y * g.taps_x
    cdef Py_ssize_t blocks = blocks_of(g.outputs, lanes)
    cdef Py_ssize_t image = weight.shape[0] * g.out_height * g.out_width  # from an image's outputs to the next's
    cdef Plan plan = plan_of(&g, images, groups, threads, sizeof(floating))
    cdef Py_ssize_t bands = plan.bands, most = plan.images, jobs = pieces_of(&g), plane = plan.height * plan.width
    cdef Py_ssize_t next_image = (g.channels if plan.copied else input.shape[1]) * plane  # and from what is read of it
    cdef bint ready = packed is not None
    # A thread that will meet the same weights again keeps them; else blocks take turns in memory that its cache has.
    cdef bint keeps = plan.own and (plan.tiled or most < images)
    # Numbers of copied images, of each thread where it has its own, and of the weights that it packs.
    cdef Py_ssize_t mine = most * g.channels * plane if plan.copied else 0
    if plan.tiled:
        next_image = jobs * tile_of(&g)
        mine = (jobs // bands + 2) * tile_of(&g) if plan.own else most * next_image
    cdef Py_ssize_t rounded = rounded_up(taps, lanes)
    cdef Py_ssize_t factors_size = 0 if ready else rounded * (room_of(g.outputs, lanes) if keeps else MOST * lanes)
    cdef Py_ssize_t zeros = weight.shape[0] if bias is None else 0
    cdef Py_ssize_t first, count, block, cuts, group, job, k, i, begin, end, top, bottom
    cdef floating* copies
    cdef floating* work
    cdef const floating* start
    cdef const floating* source
    cdef const floating* factors
    checks.require_memory(
        (
            mine * (threads if plan.own else 1) + threads * factors_size
            + images * (image + input.shape[1] * input.shape[2] * input.shape[3])
        ) * sizeof(floating),
        "cpu.cython_packed's copied images and packed weights",
    )
    cdef Tap* seen_by = <Tap*> scratch(taps * sizeof(Tap))
    cdef Py_ssize_t* packed_for = <Py_ssize_t*> scratch(threads * sizeof(Py_ssize_t))  # the group whose weights a thread has packed
    mine = apart(mine)
    copies = <floating*> scratch(mine * (threads if plan.own else 1) * sizeof(floating))
    work = <floating*> scratch((threads * factors_size + zeros) * sizeof(floating))
    try:
        if seen_by == NULL or packed_for == NULL or copies == NULL or work == NULL:
            raise MemoryError("cpu.cython_packed's copied images and packed weights do not fit in memory")
        if zeros > 0:
            memset(work + threads * factors_size, 0, zeros * sizeof(floating))
            start = work + threads * factors_size
        else:
            start = &bias[0]
        for i in range(taps):
            k = i // (g.taps_y * g.taps_x)
            seen_by[i].column = i % g.taps_x * g.dilation_x
            seen_by[i].place = k * plane + i // g.taps_x % g.taps_y * g.dilation_y * plan.width + seen_by[i].column
            if plan.tiled:
                seen_by[i].place = i * PITCH
        for i in range(threads):
            packed_for[i] = -1
        if plan.own:
            cuts = (images + most - 1) // most
            for job in prange(groups * cuts * bands, nogil=True, schedule="dynamic", num_threads=threads):
                group = job // bands // cuts
                first = job // bands % cuts * most
                count = min(most, images - first)
                begin = count * jobs * (job % bands) // bands
                end = (count * jobs * (job % bands + 1) + bands - 1) // bands
                source = &input[first, group * g.channels, 0, 0]
                if plan.tiled:
                    source = copies + threadid() * mine - begin * tile_of(&g)  # where the image's first would lie
                    tile_pieces(&g, &input[first, group * g.channels, 0, 0], <floating*> source, begin, end)
                elif plan.copied:
                    top = 0
                    bottom = plan.height
                    if bands > 1:
                        rows_seen(&g, begin, end, &top, &bottom)
                    source = copies + threadid() * mine - top * plan.width  # where the image's first row would lie
                    for i in range(count * g.channels):
                        pad_plane(
                            &seen, &input[first + i // g.channels, group * g.channels + i % g.channels, 0, 0],
                            copies + threadid() * mine + i * plane - top * plan.width, plan.width, top, bottom, plan.step_y, plan.step_x,
                        )
                for block in range(blocks):
                    k = group * g.outputs + block * pair
                    factors = work + threadid() * factors_size + (block * rounded * pair if keeps else 0)
                    if ready:
                        factors = &packed[group, block * rounded * pair]
                    elif not keeps or packed_for[threadid()] != group:  # one by one, so that each is summed while the cache has it
                        pack_block(&weight[k, 0, 0, 0], taps, outputs_of(g.outputs, block, blocks, pair), <floating*> factors)
                    # Where pieces do not divide evenly, which bands get one more changes from block to block. The upper ones have it
                    # first: with strides, more taps see padding there than below.
                    i = bands - 1 - block % bands
                    begin = (count * jobs * (job % bands) + i) // bands
                    end = (count * jobs * (job % bands + 1) + i) // bands
                    sum_pieces(
                        &g, &plan, source, next_image, seen_by, factors, start + k, &output[first, k, 0, 0], image,
                        outputs_of(g.outputs, block, blocks, pair), begin, end,
                    )
                packed_for[threadid()] = group
            return filled
        for group in range(groups):
            k = group * g.outputs
            factors = &packed[group, 0] if ready else NULL
            for first in range(0, images, most):
                count = min(most, images - first)
                source = &input[first, group * g.channels, 0, 0]
                if plan.tiled:
                    cuts = (jobs + CHUNK - 1) // CHUNK
                    for job in prange(count * cuts, nogil=True, schedule="static", num_threads=threads):
                        tile_pieces(
                            &g, &input[first + job // cuts, group * g.channels, 0, 0], copies + job // cuts * next_image,
                            job % cuts * CHUNK, min(jobs, (job % cuts + 1) * CHUNK),
                        )
                    source = copies
                elif plan.copied:
                    for job in prange(count * g.channels, nogil=True, schedule="static", num_threads=threads):
                        pad_plane(
                            &seen, &input[first + job // g.channels, group * g.channels + job % g.channels, 0, 0],
                            copies + job * plane, plan.width, 0, plan.height, plan.step_y, plan.step_x,
                        )
                    source = copies
                # A block of output channels, cut where there are too few of them for the threads.
                cuts = max(1, min(count * jobs, (2 * threads + blocks - 1) // blocks if threads > 1 else 1))
                if threads == 1:
                    with nogil:
                        for job in range(blocks * cuts):
                            sum_cut(
                                &g, &plan, source, next_image, seen_by, &weight[k, 0, 0, 0], factors, work, start + k,
                                &output[first, k, 0, 0], image, count * jobs, cuts, job,
                            )
                else:
                    for job in prange(blocks * cuts, nogil=True, schedule="dynamic", num_threads=threads):
                        sum_cut(
                            &g, &plan, source, next_image, seen_by, &weight[k, 0, 0, 0], factors, work + threadid() * factors_size,
                            start + k, &output[first, k, 0, 0], image, count * jobs, cuts, job,
                        )
    finally:
        free(seen_by)
        free(packed_for)
        free(copies)
        free(work)
    return filled


# By bytes of a number: having the arrays' own found by them takes a good part of a small layer's time.
KERNELS = {4: conv2d["float"], 8: conv2d["double"]}
