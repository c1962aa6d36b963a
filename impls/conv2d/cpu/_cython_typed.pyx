# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_typed, compiled: see there."""

from cython cimport floating


def loops(
    const floating[:, :, :, ::1] image, const floating[:, :, :, ::1] weight, floating[:, :, :, ::1] output,
    Py_ssize_t stride_y, Py_ssize_t stride_x, Py_ssize_t dilation_y, Py_ssize_t dilation_x, Py_ssize_t groups,
):
    """Fill output (N, K, P, Q) from the padded image (N, C, H, W)."""
    cdef Py_ssize_t n, k, p, q, c, r, s, first
    cdef Py_ssize_t channels = weight.shape[1], outputs = weight.shape[0] // groups
    cdef floating total
    with nogil:
        for n in range(output.shape[0]):
            for k in range(output.shape[1]):
                first = k // outputs * channels
                for p in range(output.shape[2]):
                    for q in range(output.shape[3]):
                        total = 0
                        for c in range(channels):
                            for r in range(weight.shape[2]):
                                for s in range(weight.shape[3]):
                                    total = total + weight[k, c, r, s] * image[
                                        n, first + c, p * stride_y + r * dilation_y, q * stride_x + s * dilation_x
                                    ]
                        output[n, k, p, q] = total
