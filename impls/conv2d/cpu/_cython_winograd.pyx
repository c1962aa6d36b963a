# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_winograd: blocks and threads here, what a thread does with its block in _winograd.h."""

import numpy as np

from impls import checks

cimport openmp
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdlib cimport free


cdef extern from *:
    """
    #include "_scratch.h"
    #include "_float.h"
    #include "_winograd.h"
    #include "_double.h"
    #include "_winograd.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    ctypedef struct Grouping:
        Py_ssize_t tiles_x, tiles_y, size, rows, parts, deep, reads
    Py_ssize_t row_of(const Shape*, const Grouping*, Py_ssize_t) nogil
    Grouping grouping_float(const Shape*, Py_ssize_t) nogil
    Grouping grouping_double(const Shape*, Py_ssize_t) nogil
    Py_ssize_t group_area_float(const Grouping*) nogil
    Py_ssize_t group_area_double(const Grouping*) nogil
    Py_ssize_t factors_area_float(const Grouping*) nogil
    Py_ssize_t factors_area_double(const Grouping*) nogil
    Py_ssize_t winograd_work_float(const Shape*, const Grouping*) nogil
    Py_ssize_t winograd_work_double(const Shape*, const Grouping*) nogil
    void transform_weights_float(const Shape*, const Grouping*, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*) nogil
    void transform_weights_double(const Shape*, const Grouping*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*) nogil
    void transform_tiles_float(const Shape*, const Grouping*, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*, float*) nogil
    void transform_tiles_double(const Shape*, const Grouping*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*, double*) nogil
    int finish_float(const Shape*, const Grouping*, const float*, const float*, const float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const float*, float*, Py_ssize_t, float*) nogil
    int finish_double(const Shape*, const Grouping*, const double*, const double*, const double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, const double*, double*, Py_ssize_t, double*) nogil
    int all_float(const Shape*, const Grouping*, const float*, Py_ssize_t, const float*, const float*, const float*, float*, Py_ssize_t, Py_ssize_t, Py_ssize_t, float*, float*) nogil
    int all_double(const Shape*, const Grouping*, const double*, Py_ssize_t, const double*, const double*, const double*, double*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*, double*) nogil
    void* scratch(size_t) nogil
    Py_ssize_t whole_lines(Py_ssize_t) nogil
    enum:
        VECTOR_SIZE
        MAX_TRANSFORMED_TILES_BYTES
        MIN_TILES_PER_THREAD
        MIN_TILES_PER_WEIGHT_TRANSFORM
        TRANSFORMED_TILES_BYTES


def pack(const floating[:, :, :, ::1] weight, stride, dilation, Py_ssize_t groups):
    """The weight (K, C/g, R, S) transformed: a row for each block of output channels of each group; stride and dilation pairs."""
    cdef Shape g
    g.channels, g.out_height, g.out_width = weight.shape[1], 1, 1
    g.taps_y, g.taps_x = weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.dilation_y, g.dilation_x) = stride, dilation
    cdef Grouping w = grouping_float(&g, 1) if floating is float else grouping_double(&g, 1)
    cdef Py_ssize_t pair = 2 * VECTOR_SIZE // sizeof(floating), outputs = weight.shape[0] // groups, job, k, count
    cdef Py_ssize_t blocks = (outputs + pair - 1) // pair
    cdef floating[:, ::1] packed = np.empty(
        (groups * blocks, factors_area_float(&w) if floating is float else factors_area_double(&w)), np.asarray(weight).dtype
    )
    for job in prange(groups * blocks, nogil=True, schedule="static"):
        k = job % blocks * pair
        count = min(pair, outputs - k)
        if floating is float:
            transform_weights_float(&g, &w, &weight[job // blocks * outputs + k, 0, 0, 0], count, 0, w.deep, &packed[job, 0])
        else:
            transform_weights_double(&g, &w, &weight[job // blocks * outputs + k, 0, 0, 0], count, 0, w.deep, &packed[job, 0])
    return np.asarray(packed)


def conv2d(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups, const floating[:, ::1] packed=None,
):
    """Fill output (N, K, P, Q); every array C-contiguous and not empty; stride and dilation, one of them a multiple of the other, and
    pad, what lies before the image, pairs.

    packed: what pack() returned for the same stride and dilation, where that was done before. Returns whether all outputs are finite. Raises
    MemoryError where the work does not fit.
    """
    cdef Shape g
    g.channels, g.height, g.width = weight.shape[1], input.shape[2], input.shape[3]
    g.outputs, g.out_height, g.out_width = output.shape[1] // groups, output.shape[2], output.shape[3]
    g.taps_y, g.taps_x = weight.shape[2], weight.shape[3]
    (g.stride_y, g.stride_x), (g.top, g.left), (g.dilation_y, g.dilation_x) = stride, pad, dilation
    cdef Py_ssize_t threads = openmp.omp_get_max_threads(), pair = 2 * VECTOR_SIZE // sizeof(floating)
    cdef Py_ssize_t in_image = input.shape[1] * g.height * g.width, bands, pieces = 1
    cdef bint own
    cdef int nonfinite = 0
    cdef Py_ssize_t total, most, area, each, extra, first, count, jobs, cuts, group, blocks, job, row, k, near, far, image
    image = output.shape[1] * g.out_height * g.out_width
    cdef Grouping w = grouping_float(&g, output.shape[0]) if floating is float else grouping_double(&g, output.shape[0])
    total = output.shape[0] * w.tiles_y
    area = group_area_float(&w) if floating is float else group_area_double(&w)
    # Threads that share tiles read each other's caches, so each has its own where there are enough to be worth its transform of
    # the weights. In whole groups, as many rows of tiles at a time as the caches hold.
    bands = (total + w.rows - 1) // w.rows
    own = total * w.tiles_x >= MIN_TILES_PER_THREAD * threads or groups >= 4 * threads or (groups > 1 and groups % threads == 0)
    each = area * sizeof(floating) * (threads if own else 1)  # bytes of a group of tiles, of every thread
    most = max(1, max(TRANSFORMED_TILES_BYTES, min(MIN_TILES_PER_WEIGHT_TRANSFORM // w.size * each, MAX_TRANSFORMED_TILES_BYTES)) // (each * w.parts))
    if own:
        pieces = (bands + most - 1) // most
        if groups < 4 * threads and groups % threads:
            pieces = (pieces + threads - 1) // threads * threads
        most = (bands + pieces - 1) // pieces
    area *= min(most, bands) * w.parts
    area = whole_lines(area)
    most *= w.rows
    extra = whole_lines(winograd_work_float(&g, &w) if floating is float else winograd_work_double(&g, &w))
    # Counted here: a view takes longer to say how many bytes it has.
    needed = area * (threads if own else 1) + threads * extra + output.shape[0] * (in_image + image)
    checks.require_memory(needed * sizeof(floating), "Winograd's tiles, products and weights")
    blocks = (g.outputs + pair - 1) // pair
    cdef floating* tiles = <floating*> scratch(area * (threads if own else 1) * sizeof(floating))
    cdef floating* work = <floating*> scratch(threads * extra * sizeof(floating))
    try:
        if tiles == NULL or work == NULL:
            raise MemoryError("Winograd's tiles, products and weights do not fit in memory")
        for job in prange(groups * pieces if own else 0, nogil=True, schedule="dynamic", num_threads=threads):
            group = job // pieces
            near = bands * (job % pieces) // pieces * w.rows
            far = min(bands * (job % pieces + 1) // pieces * w.rows, total)
            k = group * g.outputs
            if near < far:
                if floating is float:
                    nonfinite += all_float(
                        &g, &w, &input[0, group * g.channels, 0, 0], in_image, &weight[k, 0, 0, 0],
                        &packed[group * blocks, 0] if packed is not None else NULL, &bias[k], &output[0, k, 0, 0], image,
                        near, far - near, tiles + threadid() * area, work + threadid() * extra,
                    )
                else:
                    nonfinite += all_double(
                        &g, &w, &input[0, group * g.channels, 0, 0], in_image, &weight[k, 0, 0, 0],
                        &packed[group * blocks, 0] if packed is not None else NULL, &bias[k], &output[0, k, 0, 0], image,
                        near, far - near, tiles + threadid() * area, work + threadid() * extra,
                    )
        for group in range(0 if own else groups):
            for first in range(0, total, most):
                count = min(most, total - first)
                for job in prange(count * w.reads, nogil=True, schedule="static", num_threads=threads):
                    row = job // w.reads
                    if floating is float:
                        transform_tiles_float(
                            &g, &w, &input[(first + row) // w.tiles_y, group * g.channels, 0, 0], job % w.reads,
                            row_of(&g, &w, (first + row) % w.tiles_y), row, tiles, work + threadid() * extra,
                        )
                    else:
                        transform_tiles_double(
                            &g, &w, &input[(first + row) // w.tiles_y, group * g.channels, 0, 0], job % w.reads,
                            row_of(&g, &w, (first + row) % w.tiles_y), row, tiles, work + threadid() * extra,
                        )
                # A block of output channels, cut where there are too few of them for the threads.
                jobs = (count + w.rows - 1) // w.rows * w.parts
                cuts = max(1, min(jobs, (2 * threads + blocks - 1) // blocks if threads > 1 else 1))
                for job in prange(blocks * cuts, nogil=True, schedule="dynamic", num_threads=threads):
                    k = group * g.outputs + job // cuts * pair
                    near = jobs * (job % cuts) // cuts
                    far = jobs * (job % cuts + 1) // cuts
                    if floating is float:
                        nonfinite += finish_float(
                            &g, &w, tiles, &weight[k, 0, 0, 0],
                            &packed[group * blocks + job // cuts, 0] if packed is not None else NULL, near, far, first, count,
                            min(pair, (group + 1) * g.outputs - k), &bias[k], &output[0, k, 0, 0], image, work + threadid() * extra,
                        )
                    else:
                        nonfinite += finish_double(
                            &g, &w, tiles, &weight[k, 0, 0, 0],
                            &packed[group * blocks + job // cuts, 0] if packed is not None else NULL, near, far, first, count,
                            min(pair, (group + 1) * g.outputs - k), &bias[k], &output[0, k, 0, 0], image, work + threadid() * extra,
                        )
    finally:
        free(tiles)
        free(work)
    return nonfinite == 0
