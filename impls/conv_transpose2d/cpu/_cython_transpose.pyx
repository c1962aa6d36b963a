# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernel of cpu.cython_direct, compiled: see there."""

from cython cimport floating
from cython.parallel cimport parallel, prange
from libc.stdlib cimport free, malloc


cdef void _row(
    const floating* images, const floating* taps, floating bias, floating* phases, floating* target,
    Py_ssize_t p, Py_ssize_t width, Py_ssize_t n_phases, Py_ssize_t phase_width,
    Py_ssize_t channels, Py_ssize_t outputs, Py_ssize_t in_height, Py_ssize_t in_width,
    Py_ssize_t taps_y, Py_ssize_t taps_x, Py_ssize_t stride_y, Py_ssize_t stride_x,
    Py_ssize_t top, Py_ssize_t left, Py_ssize_t dilation_y, Py_ssize_t dilation_x,
) noexcept nogil:
    cdef Py_ssize_t c, r, s, y, x, q, offset, phase, shift, start, stop
    cdef floating factor
    cdef const floating* source
    cdef floating* place
    for q in range(n_phases * phase_width):
        phases[q] = bias
    for r in range(taps_y):
        y = p + top - r * dilation_y
        if y < 0 or y % stride_y or y // stride_y >= in_height:
            continue
        y = y // stride_y
        for s in range(taps_x):
            # Pixel x goes to q = x * stride + offset, which is place x + shift of its phase.
            offset = s * dilation_x - left
            phase = (offset % stride_x + stride_x) % stride_x
            if phase >= n_phases:
                continue
            shift = (offset - phase) // stride_x
            start = max(0, -shift)
            stop = min(in_width, phase_width - shift)
            place = phases + phase * phase_width + shift
            for c in range(channels):
                factor = taps[(c * outputs * taps_y + r) * taps_x + s]
                source = images + (c * in_height + y) * in_width
                for x in range(start, stop):
                    place[x] += factor * source[x]
    for phase in range(n_phases):
        for q in range((width - phase - 1) // n_phases + 1):
            target[q * n_phases + phase] = phases[phase * phase_width + q]


def rows(
    const floating[:, :, :, ::1] input, const floating[:, :, :, ::1] weight, const floating[::1] bias,
    floating[:, :, :, ::1] output, stride, pad, dilation, Py_ssize_t groups,
):
    """Fill output (N, K, P, Q); every array C-contiguous and not empty, stride, pad and dilation pairs."""
    cdef Py_ssize_t n_outputs = output.shape[1], height = output.shape[2], width = output.shape[3]
    cdef Py_ssize_t outputs = weight.shape[1], taps_y = weight.shape[2], taps_x = weight.shape[3]
    cdef Py_ssize_t channels = input.shape[1] // groups, in_height = input.shape[2], in_width = input.shape[3]
    cdef Py_ssize_t stride_y = stride[0], stride_x = stride[1], top = pad[0], left = pad[1]
    cdef Py_ssize_t dilation_y = dilation[0], dilation_x = dilation[1]
    cdef Py_ssize_t n_phases = min(stride_x, width)
    cdef Py_ssize_t phase_width = (width - 1) // n_phases + 1
    cdef Py_ssize_t row, p, k, n, first
    cdef floating* phases
    with nogil, parallel():
        phases = <floating*>malloc(n_phases * phase_width * sizeof(floating))
        for row in prange(output.shape[0] * n_outputs * height, schedule="static"):
            p = row % height
            k = row // height % n_outputs
            n = row // (height * n_outputs)
            first = k // outputs * channels
            _row(
                &input[n, first, 0, 0], &weight[first, k % outputs, 0, 0], bias[k], phases, &output[n, k, p, 0],
                p, width, n_phases, phase_width, channels, outputs, in_height, in_width, taps_y, taps_x,
                stride_y, stride_x, top, left, dilation_y, dilation_x,
            )
        free(phases)
