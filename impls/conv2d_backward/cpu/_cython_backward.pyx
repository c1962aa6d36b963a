# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_direct for the weight: images, pairs and threads here, the taps of a pair in _weight_gradient.h."""

import numpy as np

cimport openmp
from cython cimport floating
from cython.parallel cimport prange


cdef extern from *:
    """
    #include "_float.h"
    #include "_weight_gradient.h"
    #include "_double.h"
    #include "_weight_gradient.h"
    """
    ctypedef struct Shape:
        Py_ssize_t channels, height, width, outputs, out_height, out_width, taps_y, taps_x
        Py_ssize_t stride_y, stride_x, dilation_y, dilation_x, top, left
    void weight_gradient_float(const Shape*, const float*, const float*, float*) nogil
    void weight_gradient_double(const Shape*, const double*, const double*, double*) nogil
    enum:
        VECTOR_SIZE
        GRADIENT_IMAGES_BYTES
        GRADIENT_SUMS_BYTES
        MIN_PAIRS_PER_THREAD


def weight_rows(
    const floating[:, :, :, ::1] grad_output, const floating[:, :, :, ::1] input, floating[:, :, :, ::1] grad_weight,
    Py_ssize_t stride, pad, dilation, Py_ssize_t groups,
):
    """Fill grad_weight (K, C/groups, R, S); every array C-contiguous and not empty. stride: from row to row, along them 1."""
    cdef Shape g
    g.channels, g.height, g.width = grad_weight.shape[1], input.shape[2], input.shape[3]
    g.outputs, g.out_height, g.out_width = grad_output.shape[1] // groups, grad_output.shape[2], grad_output.shape[3]
    g.taps_y, g.taps_x = grad_weight.shape[2], grad_weight.shape[3]
    g.stride_y, g.stride_x = stride, 1
    (g.top, g.left), (g.dilation_y, g.dilation_x) = pad, dilation
    cdef Py_ssize_t threads = openmp.omp_get_max_threads(), images = input.shape[0], parts
    cdef floating[:, :, ::1] sums
    cdef Py_ssize_t pairs = grad_weight.shape[0] * g.channels, lanes = VECTOR_SIZE // sizeof(floating)
    cdef Py_ssize_t taps = g.taps_y * g.taps_x, most = max(1, GRADIENT_SUMS_BYTES // (taps * VECTOR_SIZE)), first, count
    for first in range((pairs + most - 1) // most):
        count = min(most, pairs - first * most)
        # A sum for each lane, and each thread where they share the images.
        parts = 1 if count >= MIN_PAIRS_PER_THREAD * threads else min(threads, images)
        sums = np.zeros((parts, count, taps * lanes), np.asarray(grad_weight).dtype)
        _weight_sums(&g, grad_output, input, sums, first * most, threads)
        np.asarray(grad_weight).reshape(pairs, taps)[first * most : first * most + count] = np.asarray(sums).reshape(
            parts, count, taps, lanes
        ).sum(axis=(0, 3))


cdef void _weight_sums(
    const Shape* g, const floating[:, :, :, ::1] grad_output, const floating[:, :, :, ::1] input, floating[:, :, ::1] sums,
    Py_ssize_t first, Py_ssize_t threads,
):
    """Add to sums (parts of the images, pairs of channels from the first on, taps in lanes)."""
    cdef Py_ssize_t images = input.shape[0], parts = sums.shape[0], count = sums.shape[1], block, job, n, pair, k, c, part
    cdef Py_ssize_t size = (input.nbytes + grad_output.nbytes) // images, step = max(1, GRADIENT_IMAGES_BYTES // max(1, size))
    for block in range((images + step * parts - 1) // (step * parts)):
        for job in prange(parts * count, nogil=True, schedule="static", num_threads=threads):
            part = job // count
            pair = first + job % count
            k = pair // g.channels
            c = k // g.outputs * g.channels + pair % g.channels
            for n in range((block * parts + part) * step, min(images, (block * parts + part + 1) * step)):
                if floating is float:
                    weight_gradient_float(g, &grad_output[n, k, 0, 0], &input[n, c, 0, 0], &sums[part, job % count, 0])
                else:
                    weight_gradient_double(g, &grad_output[n, k, 0, 0], &input[n, c, 0, 0], &sums[part, job % count, 0])
