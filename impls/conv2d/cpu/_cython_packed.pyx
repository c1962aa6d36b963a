# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_packed: blocks and threads here, what is summed together in _packed_plan.h, the sums in _packed.h."""

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
    #include "_float.h"
    #include "_packed.h"
    #include "_double.h"
    #include "_packed.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    void size_output(Shape*, Py_ssize_t, Py_ssize_t) nogil
    Py_ssize_t useful_threads(const Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
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
    void piece_rows(const Shape*, Py_ssize_t, Py_ssize_t, Py_ssize_t*, Py_ssize_t*) nogil
    void pad_float(const Shape*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void pad_double(const Shape*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void tile_float(const Shape*, const float*, float*, Py_ssize_t, Py_ssize_t) nogil
    void tile_double(const Shape*, const double*, double*, Py_ssize_t, Py_ssize_t) nogil
    void pack_float(const float*, Py_ssize_t, Py_ssize_t, float*) nogil
    void pack_double(const double*, Py_ssize_t, Py_ssize_t, double*) nogil
    void pieces_float(const Shape*, const Plan*, const float*, Py_ssize_t, const Tap*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void pieces_double(const Shape*, const Plan*, const double*, Py_ssize_t, const Tap*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t) nogil
    void* scratch(size_t) nogil
    Py_ssize_t whole_lines(Py_ssize_t) nogil
    enum:
        VECTOR_SIZE
        TILED_PITCH_ELEMENTS
        TILED_CHUNK_PIECES
        MAX_BLOCK_VECTORS


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
    cdef Py_ssize_t lanes = VECTOR_SIZE // sizeof(floating), taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
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


cdef struct Call:
    Shape g, image  # what is summed, and what the images are that are copied for it
    Plan plan
    Py_ssize_t images, groups, threads
    Py_ssize_t lanes, taps, rounded, blocks, pieces  # of a vector, an output channel, its packed weights, a group, an image
    # Elements: of a channel of an image as it is read, from an image's to the next's, in the input and in the output.
    Py_ssize_t plane, in_image, next_image, out_image
    Py_ssize_t copies, factors, packed  # elements of a thread's or all threads' copies, of a thread's packed weights, of a group's
    bint keeps  # a thread that will meet the same weights again keeps them; else blocks take turns in memory that its cache has


cdef inline void size_call(Call* c, bint ready, Py_ssize_t size) noexcept nogil:
    """Complete a call of which c.g, c.images and c.groups are known; ready: weights are packed; size: bytes of an element."""
    c.image = c.g
    c.threads = useful_threads(&c.g, c.images * c.groups, openmp.omp_get_max_threads(), VECTOR_SIZE)
    c.lanes = VECTOR_SIZE // size
    c.taps = c.g.channels * c.g.taps_y * c.g.taps_x
    c.rounded = rounded_up(c.taps, c.lanes)
    c.blocks = blocks_of(c.g.outputs, c.lanes)
    c.in_image = c.groups * c.g.channels * c.g.height * c.g.width
    c.out_image = c.groups * c.g.outputs * c.g.out_height * c.g.out_width
    c.plan = plan_of(&c.g, c.images, c.groups, c.threads, size)
    c.pieces = pieces_of(&c.g)
    c.plane = c.plan.height * c.plan.width
    c.next_image = (c.g.channels if c.plan.copied else c.groups * c.g.channels) * c.plane
    c.keeps = c.plan.own and (c.plan.tiled or c.plan.images < c.images)
    c.copies = c.plan.images * c.g.channels * c.plane if c.plan.copied else 0
    if c.plan.tiled:
        c.next_image = c.pieces * tile_of(&c.g)
        c.copies = (c.pieces // c.plan.bands + 2) * tile_of(&c.g) if c.plan.own else c.plan.images * c.next_image
    c.packed = c.rounded * room_of(c.g.outputs, c.lanes)
    c.factors = 0 if ready else c.packed if c.keeps else c.rounded * MAX_BLOCK_VECTORS * c.lanes


cdef inline void find_taps(const Call* c, Tap* taps) noexcept nogil:
    """What each tap of an output channel sees."""
    cdef Py_ssize_t i, k
    for i in range(c.taps):
        k = i // (c.g.taps_y * c.g.taps_x)
        taps[i].column = i % c.g.taps_x * c.g.dilation_x
        taps[i].place = k * c.plane + i // c.g.taps_x % c.g.taps_y * c.g.dilation_y * c.plan.width + taps[i].column
        if c.plan.tiled:
            taps[i].place = i * TILED_PITCH_ELEMENTS


cdef inline const floating* channels_of(const Call* c, const floating* input, Py_ssize_t image, Py_ssize_t channel) noexcept nogil:
    """The first pixel of that channel of an image, as it lies in the input."""
    return input + image * c.in_image + channel * c.image.height * c.image.width


cdef inline const floating* copy_band(
    const Call* c, const floating* input, floating* copies, Py_ssize_t group, Py_ssize_t first, Py_ssize_t count,
    Py_ssize_t begin, Py_ssize_t end,
) noexcept nogil:
    """Copy what pieces begin to end - 1 of `count` images from `first` on see of a group, where the plan copies; return where it lies.

    That is where the image's first piece or row would lie, of which the copy has those of the band alone.
    """
    cdef const floating* source = channels_of(c, input, first, group * c.g.channels)
    cdef Py_ssize_t top = 0, bottom = c.plan.height, i
    if c.plan.tiled:
        copies -= begin * tile_of(&c.g)
        tile_pieces(&c.g, source, copies, begin, end)
        return copies
    if not c.plan.copied:
        return source
    if c.plan.bands > 1:
        piece_rows(&c.g, begin, end, &top, &bottom)
    copies -= top * c.plan.width
    for i in range(count * c.g.channels):
        pad_plane(
            &c.image, channels_of(c, input, first + i // c.g.channels, group * c.g.channels + i % c.g.channels),
            copies + i * c.plane, c.plan.width, top, bottom, c.plan.step_y, c.plan.step_x,
        )
    return copies


cdef inline void sum_band(
    const Call* c, const floating* input, const floating* weight, const floating* packed, const floating* bias, floating* output,
    const Tap* taps, floating* copies, floating* work, Py_ssize_t* packed_for, Py_ssize_t job,
) noexcept nogil:
    """A band of images of a group, by a thread that copies what it reads, and packs the weights unless they are `packed`.

    copies, work, packed_for: the thread's; the last is the group whose weights are in work where these are kept.
    """
    cdef Py_ssize_t bands = c.plan.bands, band = job % bands, most = c.plan.images, cuts = (c.images + most - 1) // most
    cdef Py_ssize_t group = job // bands // cuts, first = job // bands % cuts * most, count = min(most, c.images - first)
    cdef Py_ssize_t pieces = count * c.pieces, pair = 2 * c.lanes, block, outputs, k, i
    cdef const floating* source = copy_band(
        c, input, copies, group, first, count, pieces * band // bands, (pieces * (band + 1) + bands - 1) // bands
    )
    cdef const floating* factors
    for block in range(c.blocks):
        k = group * c.g.outputs + block * pair
        outputs = outputs_of(c.g.outputs, block, c.blocks, pair)
        factors = work + (block * c.rounded * pair if c.keeps else 0)
        if packed != NULL:
            factors = packed + group * c.packed + block * c.rounded * pair
        elif not c.keeps or packed_for[0] != group:  # one by one, so that each is summed while the cache has it
            pack_block(weight + k * c.taps, c.taps, outputs, <floating*> factors)
        # Where pieces do not divide evenly, which bands get one more changes from block to block. The upper ones have it
        # first: with strides, more taps see padding there than below.
        i = bands - 1 - block % bands
        sum_pieces(
            &c.g, &c.plan, source, c.next_image, taps, factors, bias + k,
            output + first * c.out_image + k * c.g.out_height * c.g.out_width, c.out_image, outputs,
            (pieces * band + i) // bands, (pieces * (band + 1) + i) // bands,
        )
    packed_for[0] = group


cdef void copy_images(
    const Call* c, const floating* input, floating* copies, Py_ssize_t group, Py_ssize_t first, Py_ssize_t count
) noexcept nogil:
    """Copy what all threads read of `count` images from `first` on of a group: tiled, or padded."""
    cdef Py_ssize_t cuts = (c.pieces + TILED_CHUNK_PIECES - 1) // TILED_CHUNK_PIECES, job, begin
    if c.plan.tiled:
        for job in prange(count * cuts, schedule="static", num_threads=c.threads):
            begin = job % cuts * TILED_CHUNK_PIECES
            tile_pieces(
                &c.g, channels_of(c, input, first + job // cuts, group * c.g.channels), copies + job // cuts * c.next_image,
                begin, min(c.pieces, begin + TILED_CHUNK_PIECES),
            )
        return
    for job in prange(count * c.g.channels, schedule="static", num_threads=c.threads):
        pad_plane(
            &c.image, channels_of(c, input, first + job // c.g.channels, group * c.g.channels + job % c.g.channels),
            copies + job * c.plane, c.plan.width, 0, c.plan.height, c.plan.step_y, c.plan.step_x,
        )


cdef inline void sum_cut(
    const Call* c, const floating* source, const floating* weight, const floating* packed, const floating* bias, floating* output,
    const Tap* taps, floating* work, Py_ssize_t pieces, Py_ssize_t cuts, Py_ssize_t job,
) noexcept nogil:
    """Sum a block of output channels of a group, the one of number job // cuts, and of its `pieces` pieces the share job % cuts.

    weight, bias and output are at the group's first channel, output of the first image. packed: the group's packed weights, or NULL
    where the block's are to be packed into work.
    """
    cdef Py_ssize_t pair = 2 * c.lanes, k = job // cuts * pair, outputs = outputs_of(c.g.outputs, job // cuts, c.blocks, pair)
    cdef const floating* factors = work
    if packed == NULL:
        pack_block(weight + k * c.taps, c.taps, outputs, work)
    else:
        factors = packed + k * c.rounded
    sum_pieces(
        &c.g, &c.plan, source, c.next_image, taps, factors, bias + k, output + k * c.g.out_height * c.g.out_width, c.out_image,
        outputs, pieces * (job % cuts) // cuts, pieces * (job % cuts + 1) // cuts,
    )


cdef void sum_group(
    const Call* c, const floating* input, const floating* weight, const floating* packed, const floating* bias, floating* output,
    const Tap* taps, floating* copies, floating* work, Py_ssize_t group,
) noexcept nogil:
    """A group of all images, which all threads sum together: as many images at a time as the plan says."""
    cdef Py_ssize_t most = c.plan.images, batch, first, count, cuts, job, pieces, k = group * c.g.outputs
    cdef const floating* source
    cdef const floating* factors = packed + group * c.packed if packed != NULL else NULL
    cdef floating* target
    weight += k * c.taps
    bias += k
    for batch in range((c.images + most - 1) // most):
        first = batch * most
        count = min(most, c.images - first)
        pieces = count * c.pieces
        target = output + first * c.out_image + k * c.g.out_height * c.g.out_width
        source = channels_of(c, input, first, group * c.g.channels)
        if c.plan.copied:
            copy_images(c, input, copies, group, first, count)
            source = copies
        # A block of output channels, cut where there are too few of them for the threads.
        cuts = max(1, min(pieces, (2 * c.threads + c.blocks - 1) // c.blocks if c.threads > 1 else 1))
        if c.threads == 1:
            for job in range(c.blocks * cuts):
                sum_cut(c, source, weight, factors, bias, target, taps, work, pieces, cuts, job)
        else:
            for job in prange(c.blocks * cuts, schedule="dynamic", num_threads=c.threads):
                sum_cut(c, source, weight, factors, bias, target, taps, work + threadid() * c.factors, pieces, cuts, job)


cdef int compute(
    const Call* c, const floating* input, const floating* weight, const floating* packed, const floating* bias, floating* output
) except -1:
    """Fill the output; packed and bias may be NULL. Raises MemoryError where the work does not fit."""
    cdef Py_ssize_t zeros = c.groups * c.g.outputs if bias == NULL else 0, copies_size = whole_lines(c.copies), job, group
    cdef Py_ssize_t cuts = (c.images + c.plan.images - 1) // c.plan.images
    cdef Tap* taps = <Tap*> scratch(c.taps * sizeof(Tap))
    cdef Py_ssize_t* packed_for = <Py_ssize_t*> scratch(c.threads * sizeof(Py_ssize_t))  # the group whose weights a thread has packed
    cdef floating* copies = <floating*> scratch(copies_size * (c.threads if c.plan.own else 1) * sizeof(floating))
    cdef floating* work = <floating*> scratch((c.threads * c.factors + zeros) * sizeof(floating))
    try:
        if taps == NULL or packed_for == NULL or copies == NULL or work == NULL:
            raise MemoryError("cpu.cython_packed's copied images and packed weights do not fit in memory")
        if bias == NULL:
            bias = work + c.threads * c.factors
            memset(<void*> bias, 0, zeros * sizeof(floating))
        find_taps(c, taps)
        for job in range(c.threads):
            packed_for[job] = -1
        if c.plan.own:
            for job in prange(c.groups * cuts * c.plan.bands, nogil=True, schedule="dynamic", num_threads=c.threads):
                sum_band(
                    c, input, weight, packed, bias, output, taps, copies + threadid() * copies_size,
                    work + threadid() * c.factors, packed_for + threadid(), job,
                )
        else:
            with nogil:
                for group in range(c.groups):
                    sum_group(c, input, weight, packed, bias, output, taps, copies, work, group)
    finally:
        free(taps)
        free(packed_for)
        free(copies)
        free(work)
    return 0


def conv2d(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias, stride, padding, dilation,
    Py_ssize_t groups, const floating[:, ::1] packed=None, out=None,
):
    """Return the output (N, K, P, Q), `out` if it is given: every array C-contiguous, bias may be None, settings in their one form.

    packed: what pack(weight, groups) returned, where that was done before. Raises MemoryError where the work does not fit.
    Calls of Python's, and OpenMP for one thread, would take as long as a small 1x1 layer: there are few of them.
    """
    cdef Call c
    cdef Py_ssize_t below, right
    c.g.channels, c.g.height, c.g.width = weight.shape[1], input.shape[2], input.shape[3]
    c.g.outputs, c.g.taps_y, c.g.taps_x = weight.shape[0] // groups, weight.shape[2], weight.shape[3]
    (c.g.stride_y, c.g.stride_x), (c.g.dilation_y, c.g.dilation_x) = stride, dilation
    (c.g.top, below), (c.g.left, right) = padding
    size_output(&c.g, below, right)
    if out is None:
        out = empty((input.shape[0], weight.shape[0], c.g.out_height, c.g.out_width), FLOAT if floating is float else DOUBLE)
    if input.shape[0] == 0:
        return out
    cdef floating[:, :, :, ::1] output = out
    c.images, c.groups = input.shape[0], groups
    size_call(&c, packed is not None, sizeof(floating))
    checks.require_memory(
        (
            c.copies * (c.threads if c.plan.own else 1) + c.threads * c.factors + c.images * (c.out_image + c.in_image)
        ) * sizeof(floating),
        "cpu.cython_packed's copied images and packed weights",
    )
    compute(
        &c, &input[0, 0, 0, 0], &weight[0, 0, 0, 0], &packed[0, 0] if packed is not None else NULL,
        &bias[0] if bias is not None else NULL, &output[0, 0, 0, 0],
    )
    return out


# By bytes of a number: having the arrays' own found by them takes a good part of a small layer's time.
KERNELS = {4: conv2d["float"], 8: conv2d["double"]}
