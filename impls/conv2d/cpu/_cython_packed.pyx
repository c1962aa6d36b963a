# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_packed: blocks and threads here, the sums in _packed.h."""

import numpy as np

from impls import checks

cimport openmp
from cython cimport floating
from cython.parallel cimport prange, threadid


cdef extern from *:
    """
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
    enum:
        VECTOR

cdef Py_ssize_t WORK = 8 << 20  # bytes of padded images


def pack(const floating[:, :, :, ::1] weight, Py_ssize_t groups):
    """The weight (K, C/g, R, S) as (g, blocks, C/g R S, channels of a block), both rounded up."""
    cdef Py_ssize_t lanes = VECTOR // sizeof(floating), taps = weight.shape[1] * weight.shape[2] * weight.shape[3]
    cdef Py_ssize_t outputs = weight.shape[0] // groups, blocks = (outputs + 2 * lanes - 1) // (2 * lanes), job, k
    cdef floating[:, :, ::1] packed = np.empty(
        (groups * blocks, (taps + lanes - 1) // lanes * lanes, 2 * lanes), np.asarray(weight).dtype
    )
    for job in prange(groups * blocks, nogil=True, schedule="static"):
        k = job // blocks * outputs + job % blocks * 2 * lanes
        if floating is float:
            pack_float(&weight[k, 0, 0, 0], taps, outputs - job % blocks * 2 * lanes, &packed[job, 0, 0])
        else:
            pack_double(&weight[k, 0, 0, 0], taps, outputs - job % blocks * 2 * lanes, &packed[job, 0, 0])
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
    cdef bint padded = g.top > 0 or g.left > 0 or height > g.height or width > g.width
    cdef Py_ssize_t plane, first, count, most = images, jobs, blocks, cuts, group, job, k, n, near, far
    cdef const floating* source
    cdef const floating* factors
    if g.taps_y == g.taps_x == g.stride_y == g.stride_x == 1 and not padded:
        # Each output sees one place: an image is then one long row.
        g.height, g.width, g.out_height, g.out_width = 1, g.height * g.width, 1, g.out_height * g.out_width
        height, width = g.height, g.width
    if padded:
        plane = height * width
        most = min(images, max(1, WORK // (g.channels * plane * sizeof(floating))))
    else:
        width, plane = g.width, g.height * g.width
    needed = ((most * g.channels * plane if padded else 0) + (0 if packed is not None else threads * (taps + lanes) * pair))
    checks.require_memory(
        needed * sizeof(floating) + input.nbytes + output.nbytes, "cpu.cython_packed's padded images and packed weights"
    )
    places_of = np.arange(g.channels)[:, None, None] * plane
    places_of = places_of + np.arange(g.taps_y)[:, None] * (g.dilation_y * width) + np.arange(g.taps_x) * g.dilation_x
    cdef Py_ssize_t[::1] places = places_of.reshape(-1).astype(np.intp)
    cdef floating[:, :, ::1] copies = np.empty((most if padded else 0, g.channels, plane), np.asarray(output).dtype)
    cdef floating[:, ::1] work = np.empty(
        (threads, 0 if packed is not None else (taps + lanes) * pair), np.asarray(output).dtype
    )
    blocks = (g.outputs + pair - 1) // pair
    for group in range(groups):
        for first in range(0, images, most):
            count = min(most, images - first)
            if padded:
                for job in prange(count * g.channels, nogil=True, schedule="static", num_threads=threads):
                    n = job // g.channels
                    k = job % g.channels
                    if floating is float:
                        pad_float(&g, &input[first + n, group * g.channels + k, 0, 0], &copies[n, k, 0], height, width)
                    else:
                        pad_double(&g, &input[first + n, group * g.channels + k, 0, 0], &copies[n, k, 0], height, width)
                source = &copies[0, 0, 0]
            else:
                source = &input[first, group * g.channels, 0, 0]
            # A block of output channels, cut where there are too few of them for the threads.
            jobs = count * (pieces_of_float(&g) if floating is float else pieces_of_double(&g))
            cuts = max(1, min(jobs, (2 * threads + blocks - 1) // blocks if threads > 1 else 1))
            for job in prange(blocks * cuts, nogil=True, schedule="dynamic", num_threads=threads):
                k = job // cuts * pair
                near = jobs * (job % cuts) // cuts
                far = jobs * (job % cuts + 1) // cuts
                if packed is not None:
                    factors = &packed[group * blocks + job // cuts, 0, 0]
                else:
                    if floating is float:
                        pack_float(&weight[group * g.outputs + k, 0, 0, 0], taps, g.outputs - k, &work[threadid(), 0])
                    else:
                        pack_double(&weight[group * g.outputs + k, 0, 0, 0], taps, g.outputs - k, &work[threadid(), 0])
                    factors = &work[threadid(), 0]
                if floating is float:
                    pieces_float(
                        &g, source, width, (g.channels if padded else input.shape[1]) * plane, &places[0], taps, factors,
                        &bias[group * g.outputs + k], &output[first, group * g.outputs + k, 0, 0], image,
                        min(pair, g.outputs - k), near, far,
                    )
                else:
                    pieces_double(
                        &g, source, width, (g.channels if padded else input.shape[1]) * plane, &places[0], taps, factors,
                        &bias[group * g.outputs + k], &output[first, group * g.outputs + k, 0, 0], image,
                        min(pair, g.outputs - k), near, far,
                    )
