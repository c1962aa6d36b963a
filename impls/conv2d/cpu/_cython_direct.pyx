# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_direct, compiled: see there."""

from cython cimport floating
from cython.parallel cimport prange


cdef void _row(
    const floating* images, const floating* taps, floating start, floating* target,
    Py_ssize_t p, Py_ssize_t width, Py_ssize_t channels, Py_ssize_t in_height, Py_ssize_t in_width,
    Py_ssize_t taps_y, Py_ssize_t taps_x, Py_ssize_t stride_y, Py_ssize_t stride_x,
    Py_ssize_t top, Py_ssize_t left, Py_ssize_t dilation_y, Py_ssize_t dilation_x,
) noexcept nogil:
    cdef Py_ssize_t c, r, s, y, q, first, last, offset
    cdef floating factor
    cdef const floating* source
    for q in range(width):
        target[q] = start
    for c in range(channels):
        for r in range(taps_y):
            y = p * stride_y + r * dilation_y - top
            if y < 0 or y >= in_height:
                continue
            for s in range(taps_x):
                factor = taps[(c * taps_y + r) * taps_x + s]
                offset = s * dilation_x - left
                # The pixels for which 0 <= q * stride + offset < width of the input.
                first = 0 if offset >= 0 else (stride_x - 1 - offset) // stride_x
                last = in_width - 1 - offset
                last = 0 if last < 0 else min(width, last // stride_x + 1)
                source = images + (c * in_height + y) * in_width + offset
                if stride_x == 1:
                    for q in range(first, last):
                        target[q] += factor * source[q]
                else:
                    for q in range(first, last):
                        target[q] += factor * source[q * stride_x]


def rows(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups,
):
    """Fill output (N, K, P, Q); every array C-contiguous and not empty, stride, pad and dilation pairs."""
    cdef Py_ssize_t n_outputs = output.shape[1], height = output.shape[2], width = output.shape[3]
    cdef Py_ssize_t channels = weight.shape[1], taps_y = weight.shape[2], taps_x = weight.shape[3]
    cdef Py_ssize_t in_height = input.shape[2], in_width = input.shape[3]
    cdef Py_ssize_t stride_y = stride[0], stride_x = stride[1], top = pad[0], left = pad[1]
    cdef Py_ssize_t dilation_y = dilation[0], dilation_x = dilation[1]
    cdef Py_ssize_t outputs = n_outputs // groups, row, p, k, n
    for row in prange(output.shape[0] * n_outputs * height, nogil=True, schedule="static"):
        p = row % height
        k = row // height % n_outputs
        n = row // (height * n_outputs)
        _row(
            &input[n, k // outputs * channels, 0, 0], &weight[k, 0, 0, 0], bias[k], &output[n, k, p, 0],
            p, width, channels, in_height, in_width, taps_y, taps_x,
            stride_y, stride_x, top, left, dilation_y, dilation_x,
        )
