# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_direct for the weight, compiled: see there."""

from cython cimport floating
from cython.parallel cimport prange

cdef enum:
    LANES = 16  # sums side by side, since C may not reorder one: a vector of floats, two of doubles


cdef floating _dot(const floating* grads, const floating* pixels, Py_ssize_t count, Py_ssize_t step) noexcept nogil:
    cdef floating[LANES] lanes
    cdef floating total = 0
    cdef Py_ssize_t block, q, lane
    for lane in range(LANES):
        lanes[lane] = 0
    for block in range(count // LANES):
        for lane in range(LANES):
            q = block * LANES + lane
            lanes[lane] += grads[q] * pixels[q * step]
    for q in range(count - count % LANES, count):
        total += grads[q] * pixels[q * step]
    for lane in range(LANES):
        total += lanes[lane]
    return total


cdef void _weight_row(
    const floating* grads, const floating* pixels, floating* target,
    Py_ssize_t r, Py_ssize_t n_images, Py_ssize_t outputs, Py_ssize_t height, Py_ssize_t width,
    Py_ssize_t channels, Py_ssize_t in_height, Py_ssize_t in_width,
    Py_ssize_t taps_x, Py_ssize_t stride_y, Py_ssize_t stride_x,
    Py_ssize_t top, Py_ssize_t left, Py_ssize_t dilation_y, Py_ssize_t dilation_x,
) noexcept nogil:
    cdef Py_ssize_t n, p, s, y, first, last, offset
    cdef const floating* a
    cdef const floating* b
    for n in range(n_images):
        for p in range(height):
            y = p * stride_y + r * dilation_y - top
            if y < 0 or y >= in_height:
                continue
            for s in range(taps_x):
                offset = s * dilation_x - left
                # The outputs for which 0 <= q * stride + offset < width of the input.
                first = 0 if offset >= 0 else (stride_x - 1 - offset) // stride_x
                last = in_width - 1 - offset
                last = 0 if last < 0 else min(width, last // stride_x + 1)
                if first >= last:
                    continue
                a = grads + (n * outputs * height + p) * width + first
                b = pixels + (n * channels * in_height + y) * in_width + first * stride_x + offset
                if stride_x == 1:
                    target[s] += _dot(a, b, last - first, 1)
                else:
                    target[s] += _dot(a, b, last - first, stride_x)


def weight_rows(
    const floating[:, :, :, ::1] grad_output, const floating[:, :, :, ::1] input, floating[:, :, :, ::1] grad_weight,
    stride, pad, dilation, Py_ssize_t groups,
):
    """Add to grad_weight (K, C/groups, R, S); every array C-contiguous and not empty, stride, pad and dilation pairs."""
    cdef Py_ssize_t n_outputs = grad_output.shape[1], height = grad_output.shape[2], width = grad_output.shape[3]
    cdef Py_ssize_t channels = grad_weight.shape[1], taps_y = grad_weight.shape[2], taps_x = grad_weight.shape[3]
    cdef Py_ssize_t n_channels = input.shape[1], in_height = input.shape[2], in_width = input.shape[3]
    cdef Py_ssize_t stride_y = stride[0], stride_x = stride[1], top = pad[0], left = pad[1]
    cdef Py_ssize_t dilation_y = dilation[0], dilation_x = dilation[1]
    cdef Py_ssize_t outputs = n_outputs // groups, row, r, c, k
    for row in prange(n_outputs * channels * taps_y, nogil=True, schedule="static"):
        r = row % taps_y
        c = row // taps_y % channels
        k = row // (taps_y * channels)
        _weight_row(
            &grad_output[0, k, 0, 0], &input[0, k // outputs * channels + c, 0, 0], &grad_weight[k, c, r, 0],
            r, input.shape[0], n_outputs, height, width, n_channels, in_height, in_width,
            taps_x, stride_y, stride_x, top, left, dilation_y, dilation_x,
        )
