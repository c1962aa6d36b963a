# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_winograd, compiled: see there."""

from cython cimport floating
from cython.parallel cimport parallel, prange
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset


cdef void _tile_row(
    const floating* image, floating* tiles, floating* lines, floating* mixed, Py_ssize_t top, Py_ssize_t left,
    Py_ssize_t copied, Py_ssize_t in_height, Py_ssize_t in_width, Py_ssize_t tiles_x, Py_ssize_t step,
) noexcept nogil:
    cdef Py_ssize_t width = 4 * tiles_x + 2, i, j, t
    cdef floating* a0 = lines
    cdef floating* a1 = lines + width
    cdef floating* a2 = lines + 2 * width
    cdef floating* a3 = lines + 3 * width
    cdef floating* a4 = lines + 4 * width
    cdef floating* a5 = lines + 5 * width
    cdef floating* line
    cdef floating* target
    cdef floating d0, d1, d2, d3, d4, d5
    memset(lines, 0, 6 * width * sizeof(floating))
    for i in range(6):
        if 0 <= top + i < in_height and copied > 0:
            memcpy(lines + i * width + left, image + (top + i) * in_width, copied * sizeof(floating))
    for j in range(width):
        mixed[j] = 4 * a0[j] - 5 * a2[j] + a4[j]
        mixed[width + j] = a4[j] + a3[j] - 4 * (a2[j] + a1[j])
        mixed[2 * width + j] = a4[j] - a3[j] - 4 * (a2[j] - a1[j])
        mixed[3 * width + j] = a4[j] - a2[j] + 2 * (a3[j] - a1[j])
        mixed[4 * width + j] = a4[j] - a2[j] - 2 * (a3[j] - a1[j])
        mixed[5 * width + j] = 4 * a1[j] - 5 * a3[j] + a5[j]
    for i in range(6):
        line = mixed + i * width
        target = tiles + 6 * i * step
        for t in range(tiles_x):
            d0, d1, d2 = line[4 * t], line[4 * t + 1], line[4 * t + 2]
            d3, d4, d5 = line[4 * t + 3], line[4 * t + 4], line[4 * t + 5]
            target[t] = 4 * d0 - 5 * d2 + d4
            target[step + t] = d4 + d3 - 4 * (d2 + d1)
            target[2 * step + t] = d4 - d3 - 4 * (d2 - d1)
            target[3 * step + t] = d4 - d2 + 2 * (d3 - d1)
            target[4 * step + t] = d4 - d2 - 2 * (d3 - d1)
            target[5 * step + t] = 4 * d1 - 5 * d3 + d5


cdef void _output_rows(
    const floating* products, floating* output, floating* wide, floating start,
    Py_ssize_t count, Py_ssize_t width, Py_ssize_t tiles_x, Py_ssize_t step,
) noexcept nogil:
    cdef Py_ssize_t stride = 4 * tiles_x, i, q, t
    cdef const floating* m
    cdef floating* line
    cdef floating total
    for i in range(6):
        m = products + 6 * i * step
        line = wide + i * stride
        for t in range(tiles_x):
            line[4 * t] = m[t] + (m[step + t] + m[2 * step + t]) + (m[3 * step + t] + m[4 * step + t])
            line[4 * t + 1] = (m[step + t] - m[2 * step + t]) + 2 * (m[3 * step + t] - m[4 * step + t])
            line[4 * t + 2] = (m[step + t] + m[2 * step + t]) + 4 * (m[3 * step + t] + m[4 * step + t])
            line[4 * t + 3] = (m[step + t] - m[2 * step + t]) + 8 * (m[3 * step + t] - m[4 * step + t]) + m[5 * step + t]
    for i in range(count):
        line = output + i * width
        for q in range(width):
            if i % 2 == 0:
                total = wide[stride + q] + wide[2 * stride + q]
                total += (1 << i) * (wide[3 * stride + q] + wide[4 * stride + q])
            else:
                total = wide[stride + q] - wide[2 * stride + q]
                total += (1 << i) * (wide[3 * stride + q] - wide[4 * stride + q])
            if i == 0:
                total += wide[q]
            elif i == 3:
                total += wide[5 * stride + q]
            line[q] = total + start


def forward(
    const floating[:, :, :, ::1] input, floating[:, :, :, :, ::1] tiles, Py_ssize_t first, Py_ssize_t tiles_y, pad,
):
    """Fill tiles (6, 6, C, rows, tiles_x) with the transformed tiles of input (N, C, H, W) from row of tiles `first` on."""
    cdef Py_ssize_t top = pad[0], left = pad[1], channels = tiles.shape[2], rows = tiles.shape[3], tiles_x = tiles.shape[4]
    cdef Py_ssize_t width = 4 * tiles_x + 2, step = channels * rows * tiles_x, job, row
    cdef Py_ssize_t copied = min(input.shape[3], width - left)
    cdef floating* work
    with nogil, parallel():
        work = <floating*> malloc(12 * width * sizeof(floating))
        for job in prange(channels * rows, schedule="static"):
            row = first + job % rows
            _tile_row(
                &input[row // tiles_y, job // rows, 0, 0], &tiles[0, 0, job // rows, job % rows, 0], work, work + 6 * width,
                row % tiles_y * 4 - top, left, copied, input.shape[2], input.shape[3], tiles_x, step,
            )
        free(work)


def backward(
    const floating[:, :, :, :, ::1] products, const floating[::1] bias, floating[:, :, :, ::1] output,
    Py_ssize_t first, Py_ssize_t tiles_y,
):
    """Fill the outputs (N, K, P, Q) of the products (6, 6, K, rows, tiles_x) from row of tiles `first` on."""
    cdef Py_ssize_t outputs = products.shape[2], rows = products.shape[3], tiles_x = products.shape[4]
    cdef Py_ssize_t step = outputs * rows * tiles_x, job, row, top
    cdef floating* work
    with nogil, parallel():
        work = <floating*> malloc(24 * tiles_x * sizeof(floating))
        for job in prange(outputs * rows, schedule="static"):
            row = first + job % rows
            top = row % tiles_y * 4
            _output_rows(
                &products[0, 0, job // rows, job % rows, 0], &output[row // tiles_y, job // rows, top, 0], work,
                bias[job // rows], min(4, output.shape[2] - top), output.shape[3], tiles_x, step,
            )
        free(work)
