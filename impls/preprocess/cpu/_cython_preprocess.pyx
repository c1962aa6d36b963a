# cython: boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The kernels of cpu.cython_fused, compiled: see there.

They take sizes beside arrays, and raise ValueError before any work where an array does not hold what a size says.
"""

from cython.parallel cimport prange
from libc.stdlib cimport free, malloc

ctypedef unsigned char byte

cdef enum:
    BLOCK = 64  # sums of a row that stay in registers


cdef int require_inside(
    str what, Py_ssize_t top, Py_ssize_t left, Py_ssize_t height, Py_ssize_t width, Py_ssize_t rows, Py_ssize_t columns
) except -1:
    """Raise ValueError where a rectangle is empty or does not lie inside rows x columns."""
    # By differences, which no size can make overflow once it is known to be between the bounds.
    if not (0 < height <= rows and 0 < width <= columns and 0 <= top <= rows - height and 0 <= left <= columns - width):
        raise ValueError(f"{what} {height} x {width} at {top}, {left} does not lie inside {rows} x {columns}")
    return 0


cdef int require_channels(Py_ssize_t found) except -1:
    if found != 3:
        raise ValueError(f"three channels are wanted, not {found}")
    return 0


cdef void neighbours(Py_ssize_t i, Py_ssize_t size, Py_ssize_t wanted, Py_ssize_t* pair, float* share) noexcept nogil:
    """The two pixels that place i of the wanted lies between, and how far from the first to the second."""
    cdef double place = min(max((i + 0.5) * size / wanted - 0.5, 0.0), size - 1.0)
    pair[0] = <Py_ssize_t>place
    pair[1] = min(pair[0] + 1, size - 1)
    share[0] = <float>(place - pair[0])


cdef void prepare_row(
    const byte* above, const byte* below, float down, const Py_ssize_t* pairs, const float* shares, Py_ssize_t columns,
    float factor, float offset, Py_ssize_t c, float* target,
) noexcept nogil:
    cdef Py_ssize_t x, before, behind
    cdef float first, second, up = 1 - down
    for x in range(columns):
        before = 3 * pairs[2 * x] + c
        behind = 3 * pairs[2 * x + 1] + c
        first = above[before] * up + below[before] * down
        second = above[behind] * up + below[behind] * down
        target[x] = (first + (second - first) * shares[x]) * factor - offset


def prepare(
    const byte[:, :, ::1] pixels not None, region, const float[::1] factor not None, const float[::1] offset not None,
    float[:, :, ::1] patch not None, border, part,
):
    """patch[c, y, x] = x * factor[c] - offset[c] of the region's pixels, resized to the part and laid behind the border."""
    cdef Py_ssize_t top, left, height, width, high, wide, rows, columns, y, x, c
    cdef Py_ssize_t* pairs
    cdef Py_ssize_t* row_pairs
    cdef float* shares
    top, left, height, width = region
    high, wide = border
    rows, columns = part
    require_inside("region", top, left, height, width, pixels.shape[0], pixels.shape[1])
    require_inside("part", high, wide, rows, columns, patch.shape[1], patch.shape[2])
    for c in (pixels.shape[2], patch.shape[0], factor.shape[0], offset.shape[0]):
        require_channels(c)
    pairs = <Py_ssize_t*>malloc(2 * (rows + columns) * sizeof(Py_ssize_t))
    shares = <float*>malloc((rows + columns) * sizeof(float))
    if pairs == NULL or shares == NULL:
        free(pairs)
        free(shares)
        raise MemoryError("no memory for the places between which the pixels lie")
    row_pairs = pairs + 2 * columns
    for x in range(columns):
        neighbours(x, width, columns, pairs + 2 * x, shares + x)
    for y in range(rows):
        neighbours(y, height, rows, row_pairs + 2 * y, shares + columns + y)
    for y in prange(rows, nogil=True, schedule="static"):
        for c in range(3):
            prepare_row(
                &pixels[top + row_pairs[2 * y], left, 0], &pixels[top + row_pairs[2 * y + 1], left, 0], shares[columns + y],
                pairs, shares, columns, factor[c], offset[c], c, &patch[c, high + y, wide],
            )
    free(pairs)
    free(shares)


cdef void mark_row(
    const float* patch, Py_ssize_t plane, Py_ssize_t line, const float* weight, Py_ssize_t taps_y, Py_ssize_t taps_x,
    float threshold, byte* marks, Py_ssize_t columns,
) noexcept nogil:
    cdef float[BLOCK] sums
    cdef const float* source
    cdef Py_ssize_t block, first, count, x, c, r, s
    cdef float tap
    for block in range((columns + BLOCK - 1) // BLOCK):
        first = block * BLOCK
        count = min(BLOCK, columns - first)
        for x in range(BLOCK):
            sums[x] = 0
        for c in range(3):
            for r in range(taps_y):
                for s in range(taps_x):
                    tap = weight[(c * taps_y + r) * taps_x + s]
                    source = patch + c * plane + r * line + first + s
                    if count == BLOCK:
                        for x in range(BLOCK):
                            sums[x] += tap * source[x]
                    else:
                        for x in range(count):
                            sums[x] += tap * source[x]
        for x in range(count):
            marks[first + x] = 255 if sums[x] > threshold else 0


def mark(
    const float[:, :, ::1] patch not None, const float[:, :, ::1] weight not None, float threshold, byte[:, ::1] marks not None
):
    """marks[y, x] = 255 where the response is above the threshold; the patch has a border of zeros around it."""
    cdef Py_ssize_t rows = marks.shape[0], columns = marks.shape[1], line = patch.shape[2], plane = patch.shape[1] * line, y
    cdef Py_ssize_t taps_y = weight.shape[1], taps_x = weight.shape[2]
    require_inside("weight", 0, 0, taps_y, taps_x, patch.shape[1], line)
    require_inside("marks", 0, 0, rows, columns, patch.shape[1] - taps_y + 1, line - taps_x + 1)
    require_channels(patch.shape[0])
    require_channels(weight.shape[0])
    for y in prange(rows, nogil=True, schedule="static"):
        mark_row(
            &patch[0, y, 0], plane, line, &weight[0, 0, 0], taps_y, taps_x, threshold, &marks[y, 0], columns
        )


def paste(const byte[:, ::1] marks not None, byte[:, ::1] mask not None, region):
    """Each of the region's pixels in the mask like the mark that lies nearest."""
    cdef Py_ssize_t top, left, height, width, rows = marks.shape[0], columns = marks.shape[1], y, x
    cdef const byte* source
    cdef byte* target
    cdef Py_ssize_t* places
    top, left, height, width = region
    require_inside("region", top, left, height, width, mask.shape[0], mask.shape[1])
    require_inside("marks", 0, 0, 1, 1, rows, columns)
    places = <Py_ssize_t*>malloc(width * sizeof(Py_ssize_t))
    if places == NULL:
        raise MemoryError("no memory for the places of the marks")
    for x in range(width):
        places[x] = (2 * x + 1) * columns // (2 * width)
    for y in prange(height, nogil=True, schedule="static"):
        paste_row(&marks[(2 * y + 1) * rows // (2 * height), 0], places, width, &mask[top + y, left])
    free(places)


cdef void paste_row(const byte* source, const Py_ssize_t* places, Py_ssize_t width, byte* target) noexcept nogil:
    cdef Py_ssize_t x
    for x in range(width):
        target[x] = source[places[x]]
