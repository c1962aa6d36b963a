# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of im2col.cython, compiled: see there."""

from cython cimport floating
from cython.parallel cimport prange


cdef void _row(
    const floating* image, floating* target, Py_ssize_t height, Py_ssize_t width, Py_ssize_t in_height, Py_ssize_t in_width,
    Py_ssize_t stride_y, Py_ssize_t stride_x, Py_ssize_t above, Py_ssize_t offset,
) noexcept nogil:
    cdef Py_ssize_t p, q, y
    cdef const floating* source
    # The pixels that lie in the image; left and right of them is padding.
    cdef Py_ssize_t start = 0 if offset >= 0 else min(width, (stride_x - 1 - offset) // stride_x)
    cdef Py_ssize_t stop = start
    if in_width - 1 - offset >= 0:
        stop = max(start, min(width, (in_width - 1 - offset) // stride_x + 1))
    for p in range(height):
        y = p * stride_y + above
        if y < 0 or y >= in_height:
            for q in range(width):
                target[q] = 0
        else:
            source = image + y * in_width + offset
            for q in range(start):
                target[q] = 0
            if stride_x == 1:
                for q in range(start, stop):
                    target[q] = source[q]
            else:
                for q in range(start, stop):
                    target[q] = source[q * stride_x]
            for q in range(stop, width):
                target[q] = 0
        target += width


def patches(const floating[:, :, ::1] image, floating[:, :, ::1] columns, kernel, stride, pad, dilation):
    """Fill columns (C R S, P, Q) with the patches of one image (C, H, W); pairs are (vertical, horizontal)."""
    cdef Py_ssize_t taps_y = kernel[0], taps_x = kernel[1], stride_y = stride[0], stride_x = stride[1]
    cdef Py_ssize_t top = pad[0], left = pad[1], dilation_y = dilation[0], dilation_x = dilation[1]
    cdef Py_ssize_t row, r, s
    for row in prange(columns.shape[0], nogil=True, schedule="static"):
        s = row % taps_x
        r = row // taps_x % taps_y
        _row(
            &image[row // (taps_y * taps_x), 0, 0], &columns[row, 0, 0], columns.shape[1], columns.shape[2],
            image.shape[1], image.shape[2], stride_y, stride_x, r * dilation_y - top, s * dilation_x - left,
        )
