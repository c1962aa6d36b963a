"""A raw CUDA kernel for outputs that see one channel: a warp streams down an image, its rows on their way while it sums.

2 N K P Q R S FLOPs, no extra memory. A warp has a strip of columns, or several small images side by side. Rows of input are
copied to shared memory without passing through registers, many rows before they are needed, with zeros around the image; so
the memory is busy while a few warps sum, whatever the kernel's size. Each row is read once: it goes into the sums, in
registers, of all rows of output that see it. The CUDA kernel is compiled for each kernel size, stride and width. What is
too large for registers or shared memory has one that sums an output a thread.
https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions-cp-async
"""

import functools
import math

import cupy

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.cupy_arrays import (
    MULTIPROCESSOR,
    REGISTERS,
    WIDEST,
    at_once,
    even,
    multiprocessors,
    or_null,
    raw_kernel,
)
from impls.conv2d.cupy_pixels import pixel_by_pixel
from impls.conv2d.cupy_rows import SMALL, STREAM
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_depthwise")

WARP = 32
THREADS = 128  # of a block; a multiple of the warp that divides every multiprocessor's limit
GROUPS = (THREADS, THREADS // 2)  # threads that stream over wide images together; over narrow ones a warp does
SHARED = 46 << 10  # bytes of shared memory of a block, for copies
WARPS = 2  # of a block that holds whole images
STORED = 64  # bytes of a row of output that is worth storing as it is made
BUSY = 1 << 10  # warps that keep a large device busy: if there are fewer, each has fewer images or rows
OTHERS = 32  # registers of a thread for everything but sums, taps, pixels and places
AHEAD = 3  # copies of the rows that a group streams over, each of as many as an output sees ...
TALL = 64  # ... and rows of a strip where few are summed in vain: short strips keep together what is read at a time
LONG = 5  # from how many rows on that an output sees two copies do, and strips are as tall as suits the device
WAVES = 4  # times that it is filled with blocks then, at most
LATE = 20  # the share of its time by which the last block of a wave ends later than the others
HALF = 0.5  # the share of a multiprocessor's blocks that take as long as fewer: alone, they wait for memory
HEAVY = 36  # taps whose sums take as long as memory does; then no thread should be idle


@implementation(
    device="cuda",
    family="direct",
    summary="CuPy raw kernel: one channel per output, rows streamed through shared memory",
    arrays="cupy",
    limits={"C/groups": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, 1, R, S)."""
    output = cupy.empty(output_shape(input.shape, weight.shape, stride, padding, dilation), input.dtype)
    if output.size:
        image, taps, start = cupy.ascontiguousarray(input), cupy.ascontiguousarray(weight), or_null(bias)
        before, widths = (padding[0][0], padding[1][0]), (at_once(image), at_once(output))
        shapes = input.shape, weight.shape, output.shape
        if found := launch(*shapes, stride, before, dilation, input.dtype.name, *widths):
            kernel, grid, block, numbers = found
            kernel(grid, block, (image, taps, start, output, *numbers))
        else:
            pixel_by_pixel(image, taps, start, output, stride, before, dilation, groups)
    return output


@functools.lru_cache(maxsize=1024)
def launch(input, weight, output, stride, before, dilation, dtype, load, store):
    """The kernel for a problem given by its shapes, its grid and block, its arguments after the arrays; None if too large.

    load, store: elements that may be read and written at once where input and output begin.
    """
    problem = _Problem(input, weight, output, stride, before, dilation, dtype, load, store)
    if problem.registers > REGISTERS:
        return None
    shapes = _shapes(-(-problem.output[3] // problem.side), problem.planes, math.prod(problem.taps) >= HEAVY)
    return _launch_of_images(problem, shapes[0]) or _launch_of_strips(problem, shapes)


class _Problem:
    """The parameters of a problem for the launches of both kernels."""

    def __init__(self, input, weight, output, stride, before, dilation, dtype, load, store):
        (_, _, height, width), taps, (n, k, p, q) = input, weight[2:], output
        self.input, self.output, self.taps = input, output, taps
        self.stride, self.before, self.dilation, self.dtype = stride, before, dilation, dtype
        self.itemsize = 8 if dtype == "float64" else 4
        self.side = WIDEST // self.itemsize  # outputs of a thread, side by side
        self.planes = n * k
        self.live = (taps[0] - 1) * dilation[0] // stride[0] + 1  # rows of output that see a row of input
        self.span = (self.side - 1) * stride[1] + (taps[1] - 1) * dilation[1] + 1  # columns that a thread's outputs see
        # For sums, taps and what is seen of a row.
        self.registers = (self.live * self.side + math.prod(taps) + self.span) * self.itemsize // 4
        self.elements = max(math.prod(input), math.prod(weight), math.prod(output))
        self.image = max(height * width, p * q)  # elements
        self.load, self.store = math.gcd(load, width), math.gcd(store, q)
        self.shift = -before[1] % self.load  # from where `load` elements may be read at once to the strip's first pixel
        self.parts = -(-(self.shift + self.span) // self.side)  # of 128 bits, that a thread's outputs see
        self.lines = self.live * stride[0]  # rows of input that are copied at a time

    def constants(self, **more):
        """The constants of a kernel's source."""
        own = {"LIVE": self.live, "SPAN_X": self.span}
        own |= {"TAPS_Y": self.taps[0], "STRIDE_Y": self.stride[0], "DILATION_Y": self.dilation[0]}
        own |= {"TAPS_X": self.taps[1], "STRIDE_X": self.stride[1], "DILATION_X": self.dilation[1]}
        own |= {"LOAD": self.load, "SHIFT": self.shift, "STORE": self.store}
        return own | more


def _launch_of_images(problem, shape):
    """The launch of the kernel whose groups hold whole images; None if the other kernel suits them better."""
    (_, channels, height, width), (_, k, p, q) = problem.input, problem.output
    group, _, lanes, images = shape
    side, stride, before = problem.side, problem.stride, problem.before
    pitch = max((lanes - 1) * stride[1] + problem.parts, -(-(before[1] + problem.shift + width) // side)) * side
    distance = _image_distance(max(height, p) * pitch // side, lanes, stride[1])
    # Rows of output that are whole pieces of 128 bits, and not too few, are best stored as they are made.
    stored = problem.load == problem.store == side and q * problem.itemsize >= STORED
    fits = WARPS * (group // lanes) * distance * WIDEST <= SHARED
    fits = fits and max(width // problem.load, q // problem.store) <= group and before[0] < problem.lines
    reach = max(
        padding + (size + problem.live + side) * step for padding, size, step in zip(before, (p, q), stride, strict=True)
    )
    if images == 1 or group != WARP or k != channels or stored or not fits or reach >= 2**31:
        return None
    blocks = -(-problem.planes // (images * WARPS))
    # What is counted: elements, and those of the images of a group that has no more.
    counted = problem.elements + images * problem.image + blocks * WARPS * images
    constants = problem.constants(GROUP=group, GROUPS=WARPS, IMAGES=images, LANES=lanes, TOP=before[0], LEFT=before[1])
    constants |= {"HEIGHT": height, "WIDTH": width, "OUT_HEIGHT": p, "OUT_WIDTH": q, "PITCH": pitch, "APART": distance}
    constants["INDEX"] = _index_type(counted)
    kernel = raw_kernel(SMALL, "conv2d", problem.dtype, **constants)
    return kernel, (blocks,), (WARP, WARPS), (cupy.int64(problem.planes), cupy.int32(k))


def _launch_of_strips(problem, shapes):
    """The launch of the kernel that streams down strips of images; None if no shape of a block fits."""
    (_, channels, height, width), (_, k, p, q) = problem.input, problem.output
    ahead = AHEAD if problem.live < LONG else 2
    found = _streaming_shape(problem, shapes, ahead)
    if found is None:
        return None
    (group, groups, lanes, images), pitch, (sources, head, main) = found
    strips_x, deep = -(-q // (lanes * problem.side)), -(-problem.planes // images)
    resident = MULTIPROCESSOR // (group * groups * (problem.registers + sources + OTHERS))
    if problem.live < LONG:
        tall = even(p, max(1, min(TALL, p * strips_x * deep * group // (WARP * BUSY))))
    else:
        tall = _strip_rows(p, strips_x * deep, multiprocessors(), resident * groups, problem.live)
    strips_y = -(-p // tall)
    blocks = -(-strips_x * strips_y * deep // groups)
    constants = problem.constants(GROUP=group, GROUPS=groups, IMAGES=images, LANES=lanes, PITCH=pitch, AHEAD=ahead)
    constants |= {"HEAD": head, "MAIN": main, "RESIDENT": resident, "MULTIPLIER": k // channels}
    below = (ahead + 2) * problem.lines  # rows of input that are counted beyond the last
    reach = (
        (strips_y + 1) * tall * problem.stride[0] + below + problem.before[0],
        (strips_x + 1) * lanes * problem.side * problem.stride[1] + pitch + problem.before[1],
    )
    # Beyond the last row of the last image nothing is stored or read, but counted.
    beyond = (tall + problem.live) * q + below * width
    constants["INDEX"] = _index_type(*reach, problem.elements + images * problem.image + beyond + blocks * groups)
    numbers = (strips_x, strips_y, tall, height, width, k, p, q, *problem.before)
    kernel = raw_kernel(STREAM, "conv2d", problem.dtype, **constants)
    return kernel, (blocks,), (group, groups), (cupy.int64(problem.planes), *map(cupy.int32, numbers))


def _streaming_shape(problem, shapes, ahead):
    """The first shape whose copies fit in shared memory and registers, its pitch, and what _copies says; None if none."""
    for shape in shapes:
        group, groups, lanes, images = shape
        pitch = ((lanes - 1) * problem.stride[1] + problem.parts) * problem.side
        pieces, own = pitch // problem.load, min(problem.before[1] + problem.shift, pitch) // problem.load
        # A block copies its own columns row by row, which begin where the memory's 128 bytes do; a warp what takes it least.
        splits = [(own, min(lanes * problem.stride[1] * problem.side // problem.load, pieces - own))]
        splits = splits if group > WARP else [(0, count) for count in range(pieces + 1)]
        _, *copies = min(_copies(pieces, first, count, images, problem.lines, group) for first, count in splits)
        size = ahead * groups * problem.lines * images * pitch * problem.itemsize
        if size <= SHARED and problem.registers + copies[0] <= REGISTERS:
            return shape, pitch, copies
    return None


def _index_type(*counts):
    """The type in which all these can be counted."""
    return "int" if max(counts) < 2**31 else "long long"


def _shapes(across, planes, heavy):
    """The possible shapes of a block, the fastest first, then those that need less memory.

    Each is a group's threads, a block's groups, a row's threads in a group, and the images that a group has side by side.
    """
    idle = lambda group: -(-across // group) * group  # noqa: E731
    wide = sorted(GROUPS, key=idle) if heavy else GROUPS
    found = []
    for group in (*(wide if across > WARP else ()), WARP):
        lanes = even(across, group)
        images = min(group // lanes, max(1, planes // BUSY)) if lanes == across else 1
        while images:
            found += [(group, groups, lanes, images) for groups in ((4, 2, 1) if group == WARP else (1,))]
            images //= 2
    return found


def _copies(pieces, head, main, images, lines, group):
    """Pieces that a thread copies, places they come from, head, main, where `main` from `head` on are copied row by row.

    What is left over of all rows and images is dealt out together.
    """
    by_row, rest = -(-images * main // group), -(-lines * images * (pieces - main) // group)
    return by_row * lines + rest, by_row + rest, head, main


def _image_distance(minimum, lanes, step):
    """The minimum distance of images in shared memory, in parts of 128 bits, at which eight threads meet in the fewest banks.

    lanes: threads of an image, each `step` parts from the one before it. A multiprocessor serves eight such parts at a time.
    """

    def met(distance):
        banks = [(thread // lanes * distance + thread % lanes * step) % 8 for thread in range(8)]
        return max(map(banks.count, banks))

    return min(range(minimum, minimum + 8), key=met)


def _strip_rows(rows, others, multiprocessors, resident, live):
    """The rows of a strip for which the busiest multiprocessor, with so many groups resident, has the fewest to sum.

    others: strips beside and behind each other. Of each, live - 1 rows are summed that are not stored.
    """
    found = []
    for each in range(1, WAVES * resident + 1):
        tall = -(-rows // min(rows, max(1, each * multiprocessors // others)))
        tall += (1 - tall) % live  # so that it takes whole turns of `live` rows
        waves, part = divmod(-(-(-(-rows // tall) * others) // multiprocessors) / resident, 1)
        time = waves + (max(part, HALF) if part else 0) + (1 + (part > 0)) / LATE
        found.append(((tall + live - 1) * time, tall))
    return min(found)[1]
