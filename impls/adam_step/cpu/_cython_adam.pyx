# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_typed and cpu.cython_fused, compiled: see there."""

from cython cimport floating
from cython.parallel cimport prange
from libc.math cimport sqrt, sqrtf

cdef Py_ssize_t BLOCK = 1 << 13  # elements of a thread's turn, a multiple of every vector; fewer are not worth a second thread


cdef inline floating root(floating value) noexcept nogil:
    if floating is float:
        return sqrtf(value)
    else:
        return sqrt(value)


def typed(
    floating[::1] parameter, const floating[::1] gradient, floating[::1] exp_avg, floating[::1] exp_avg_sq,
    double rate, double beta1, double beta2, double eps,
):
    """Update parameter and both moments, a formula after the other."""
    cdef Py_ssize_t i
    cdef floating b1 = beta1, b2 = beta2, rest1 = 1 - beta1, rest2 = 1 - beta2, r = rate, e = eps
    with nogil:
        for i in range(parameter.shape[0]):
            exp_avg[i] = b1 * exp_avg[i] + rest1 * gradient[i]
        for i in range(parameter.shape[0]):
            exp_avg_sq[i] = b2 * exp_avg_sq[i] + rest2 * gradient[i] * gradient[i]
        for i in range(parameter.shape[0]):
            parameter[i] -= r * exp_avg[i] / (root(exp_avg_sq[i]) + e)


def fused(
    floating[::1] parameter, const floating[::1] gradient, floating[::1] exp_avg, floating[::1] exp_avg_sq,
    double rate, double beta1, double beta2, double eps,
):
    """Update parameter and both moments in one pass, on as many threads as OpenMP has."""
    cdef Py_ssize_t size = parameter.shape[0], blocks = (size + BLOCK - 1) // BLOCK, block
    cdef floating *p
    cdef const floating *g
    cdef floating *m
    cdef floating *v
    if not size:
        return
    p, g, m, v = &parameter[0], &gradient[0], &exp_avg[0], &exp_avg_sq[0]
    for block in prange(blocks, nogil=True, schedule="static", use_threads_if=blocks > 1):
        update(
            p, g, m, v, block * BLOCK, min(size, (block + 1) * BLOCK),
            <floating>rate, <floating>beta1, <floating>beta2, <floating>(1 - beta1), <floating>(1 - beta2), <floating>eps,
        )


cdef void update(
    floating *parameter, const floating *gradient, floating *exp_avg, floating *exp_avg_sq, Py_ssize_t start, Py_ssize_t stop,
    floating rate, floating beta1, floating beta2, floating rest1, floating rest2, floating eps,
) noexcept nogil:
    """Some of the elements."""
    cdef Py_ssize_t i
    cdef floating g, m, v
    for i in range(start, stop):
        g = gradient[i]
        m = beta1 * exp_avg[i] + rest1 * g
        v = beta2 * exp_avg_sq[i] + rest2 * g * g
        exp_avg[i] = m
        exp_avg_sq[i] = v
        parameter[i] -= rate * m / (root(v) + eps)
