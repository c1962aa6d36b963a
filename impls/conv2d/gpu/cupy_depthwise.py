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
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_depthwise")

WARP = 32
THREADS = 128  # of a block; a multiple of the warp that divides every multiprocessor's limit
GROUPS = (THREADS, THREADS // 2)  # threads that stream over wide images together; over narrow ones a warp does
SHARED = 46 << 10  # bytes of shared memory of a block, for copies
WARPS, FEWEST = 2, 3  # of a block that holds whole images, and for how many there should be room
BUSY = 1 << 10  # warps that keep a large device busy: where there are fewer, each has fewer images or rows
OTHERS = 32  # registers of a thread for everything but sums, taps, pixels and places
AHEAD = 3  # copies of the rows that a group streams over, each of as many as an output sees ...
TALL = 64  # ... and rows of a strip where few are summed in vain: short strips keep together what is read at a time
LONG = 5  # from how many rows on that an output sees two copies do, and strips are as tall as suits the device
WAVES = 4  # times that it is filled with blocks then, at most
LATE = 20  # the share of its time by which the last block of a wave ends later than the others
HALF = 0.5  # the share of a multiprocessor's blocks that take as long as fewer: alone, they wait for memory
HEAVY = 36  # taps whose sums take as long as memory does; then no thread should be idle

# A group of threads, a warp or a block, does one thing together. LIVE rows of output see a row of input, SPAN_X columns of
# input are seen by a thread's outputs in a row.
BOTH = r"""
#define SIDE (16 / (int)sizeof(T))  // outputs of a thread, side by side

struct alignas(16) Part { T at[SIDE]; };
struct alignas(STORE * sizeof(T)) Stored { T at[STORE]; };

// Until all threads of the group have come here.
__device__ __forceinline__ void together()
{
    if (GROUP == 32) __syncwarp();
    else __syncthreads();
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
typedef unsigned int Place;  // in shared memory, in bytes
#define UNIT (int)sizeof(T)
__device__ __forceinline__ Place place_of(T* at) { return (Place)__cvta_generic_to_shared(at); }

// Copy LOAD elements to shared memory, or zeros: on the way until wait() says so.
__device__ __forceinline__ void copy(const Place to, const T* from, const bool inside)
{
    const int bytes = inside ? LOAD * (int)sizeof(T) : 0;
    if (LOAD * sizeof(T) == 16)
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else if (LOAD * sizeof(T) == 8)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" :: "r"(to), "l"(from), "r"(bytes) : "memory");
}

// What was copied since the last call of this belongs together.
__device__ __forceinline__ void close() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Until all threads of the group have come here, and their copies are there but for the last LATER that were closed.
template <int LATER> __device__ __forceinline__ void wait()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(LATER) : "memory");
    together();
}
#else
typedef T* Place;
#define UNIT 1
__device__ __forceinline__ Place place_of(T* at) { return at; }
__device__ __forceinline__ void copy(const Place to, const T* from, const bool inside)
{
    #pragma unroll
    for (int i = 0; i < LOAD; ++i) to[i] = inside ? from[i] : (T)0;
}
__device__ __forceinline__ void close() {}
template <int LATER> __device__ __forceinline__ void wait() { together(); }
#endif

// Read the taps of an output channel, and begin each of its sums with the bias, which is returned.
__device__ __forceinline__ T begin_with(
    T (&sum)[LIVE][SIDE], T (&taps)[TAPS_Y * TAPS_X], const T* __restrict__ weight, const T* __restrict__ bias, const INDEX k)
{
    #pragma unroll
    for (int tap = 0; tap < TAPS_Y * TAPS_X; ++tap) taps[tap] = weight[k * (TAPS_Y * TAPS_X) + tap];
    const T start = bias ? bias[k] : (T)0;
    #pragma unroll
    for (int live = 0; live < LIVE; ++live)
        #pragma unroll
        for (int side = 0; side < SIDE; ++side) sum[live][side] = start;
    return start;
}

// Add what row `line` of the STRIDE_Y rows that are new to row p of output has for the rows that see it; turn is p % LIVE.
__device__ __forceinline__ void add(
    T (&sum)[LIVE][SIDE], const T (&taps)[TAPS_Y * TAPS_X], const T* pixels, const int turn, const int line)
{
    #pragma unroll
    for (int r = 0; r < TAPS_Y; ++r) {
        if (r * DILATION_Y % STRIDE_Y != line) continue;
        const int above = r * DILATION_Y / STRIDE_Y;  // rows of output between p and the one that sees it through r
        #pragma unroll
        for (int s = 0; s < TAPS_X; ++s)
            #pragma unroll
            for (int side = 0; side < SIDE; ++side)
                sum[(turn - above + LIVE) % LIVE][side] += taps[r * TAPS_X + s] * pixels[side * STRIDE_X + s * DILATION_X];
    }
}
"""

STREAM = (
    BOTH
    + r"""
#define PARTS ((SHIFT + SPAN_X + SIDE - 1) / SIDE)  // of 128 bits, that a thread reads of a row
#define LINES (LIVE * STRIDE_Y)  // rows of input that are copied together
#define PIECES (IMAGES * PITCH / LOAD)  // that a row of all images is copied in,
#define ROUNDS (PIECES / GROUP)  // so many by each thread, the same of every row;
#define REST (PIECES % GROUP ? PIECES % GROUP : 1)  // what is left over of all rows, so much of each,
#define MINE ((PIECES % GROUP * LINES + GROUP - 1) / GROUP)  // is so many pieces of a thread

extern "C" __global__ __launch_bounds__(GROUP * GROUPS, RESIDENT) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int strips_x, int strips_y, int tall, int height, int width, int outputs,
    int out_height, int out_width, int top, int left)
{
    __shared__ Part copies[GROUPS][AHEAD][LINES][IMAGES * PITCH / SIDE];
    // Strips along x, along y, then images; a warp whose images would begin beyond the last has none to store.
    const unsigned INDEX strip = (unsigned INDEX)blockIdx.x * GROUPS + threadIdx.y;
    const unsigned INDEX place = strip / strips_x;
    const INDEX first_q = (INDEX)(strip % strips_x) * (LANES * SIDE);
    const INDEX first_p = (INDEX)(place % strips_y) * tall;
    const INDEX first = (INDEX)(place / strips_y) * IMAGES;
    const int lane = threadIdx.x, image = lane < IMAGES * LANES ? lane / LANES : 0, beside = lane % LANES * SIDE;
    const INDEX plane = first + image, q = first_q + beside;
    const bool summing = lane < IMAGES * LANES && plane < planes && q < out_width;
    const INDEX k = summing ? plane % outputs : 0;

    // Where this thread's pieces lie in the input when row 0 is the first to be copied, and which lie in its columns.
    const INDEX x = first_q * STRIDE_X - left - SHIFT;  // a multiple of LOAD, as the width is: a piece lies inside whole
    INDEX source[ROUNDS + MINE];
    bool inside[ROUNDS + MINE];
    #pragma unroll
    for (int m = 0; m < ROUNDS + MINE; ++m) {
        const int left_over = (m - ROUNDS) * GROUP + lane, line = m < ROUNDS ? 0 : left_over / REST;
        const int piece = m < ROUNDS ? m * GROUP + lane : ROUNDS * GROUP + left_over % REST;
        const INDEX from = first + piece / (PITCH / LOAD), column = x + piece % (PITCH / LOAD) * LOAD;
        inside[m] = line < LINES && from < planes && column >= 0 && column < width;
        source[m] = inside[m] ? (from / MULTIPLIER * height + line) * width + column : 0;
    }
    const INDEX last = first_p + tall < out_height ? first_p + tall : out_height;
    INDEX y = first_p * STRIDE_Y - top;  // the next row to be copied, ...
    const INDEX seen = (last - 1) * STRIDE_Y - top + (TAPS_Y - 1) * DILATION_Y + 1;  // ... which ends before this one, ...
    const INDEX bottom = seen < 0 ? 0 : seen < height ? seen : height;
    int free = 0;  // ... and which copy of LINES it goes to
    const auto fetch = [&]() {
        const Place to = place_of(copies[threadIdx.y][free][0]->at + lane * LOAD);
        const INDEX above = y * width;
        // Compared as numbers without a sign, rows above the image are many; what is not within is not read.
        #pragma unroll
        for (int m = 0; m < ROUNDS; ++m)
            #pragma unroll
            for (int line = 0; line < LINES; ++line) {
                const bool within = inside[m] && (unsigned INDEX)(y + line) < (unsigned INDEX)bottom;
                copy(to + (line * PIECES + m * GROUP) * LOAD * UNIT, input + (source[m] + above + line * width), within);
            }
        const bool whole = y >= 0 && y + LINES <= bottom;
        #pragma unroll
        for (int m = ROUNDS; m < ROUNDS + MINE; ++m) {
            const int left_over = (m - ROUNDS) * GROUP + lane, line = left_over / REST;
            const int piece = line * PIECES + ROUNDS * GROUP + left_over % REST;
            const bool within = inside[m] && (whole || (unsigned INDEX)(y + line) < (unsigned INDEX)bottom);
            if ((m + 1 - ROUNDS) * GROUP <= LINES * REST || line < LINES)
                copy(to + (piece - lane) * LOAD * UNIT, input + (source[m] + above), within);
        }
        close();
        y += LINES;
        free = free == AHEAD - 1 ? 0 : free + 1;
    };
    for (int ahead = 0; ahead < AHEAD - 1; ++ahead) fetch();

    T taps[TAPS_Y * TAPS_X], sum[LIVE][SIDE];
    const T start = begin_with(sum, taps, weight, bias, k);

    // Threads without outputs read too, but never beyond a row of copies.
    const int begin = (image * PITCH + beside * STRIDE_X) / SIDE;
    const unsigned INDEX kept = summing ? last - first_p : 0;  // rows of outputs that this thread has to store
    INDEX target = (plane * out_height + first_p - (LIVE - 1)) * out_width + q;
    int ready = 0;  // the copy that is read next
    // STRIDE_Y rows of input are the first that row p of output sees, and the last that row p - LIVE + 1 does.
    for (INDEX p = first_p; p < last + LIVE - 1;) {
        wait<AHEAD - 2>();
        fetch();  // into the copy that all threads have read in the turns before
        #pragma unroll
        for (int turn = 0; turn < LIVE; ++turn, ++p, target += out_width) {
            #pragma unroll
            for (int line = 0; line < STRIDE_Y; ++line) {
                T pixels[PARTS * SIDE];
                #pragma unroll
                for (int part = 0; part < PARTS; ++part) {
                    const Part found = copies[threadIdx.y][ready][turn * STRIDE_Y + line][begin + part];
                    #pragma unroll
                    for (int i = 0; i < SIDE; ++i) pixels[part * SIDE + i] = found.at[i];
                }
                add(sum, taps, pixels + SHIFT, turn, line);
            }
            const int done = (turn + 1) % LIVE;
            #pragma unroll
            for (int side = 0; side < SIDE; side += STORE) {
                Stored made;
                #pragma unroll
                for (int i = 0; i < STORE; ++i) made.at[i] = sum[done][side + i];
                // Compared as numbers without a sign, rows before the first are many.
                if ((unsigned INDEX)(p - first_p - (LIVE - 1)) < kept && (side == 0 || q + side < out_width))
                    *reinterpret_cast<Stored*>(output + target + side) = made;
            }
            #pragma unroll
            for (int side = 0; side < SIDE; ++side) sum[done][side] = start;
        }
        ready = ready == AHEAD - 1 ? 0 : ready + 1;
    }
    wait<0>();  // nothing is on its way to shared memory that others have by then
}
"""
)

SMALL = (
    BOTH
    + r"""
#define PIXELS (HEIGHT * WIDTH)
#define MADE (OUT_HEIGHT * OUT_WIDTH)

extern "C" __global__ __launch_bounds__(GROUP * GROUPS) void conv2d(
    const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ output,
    long long planes, int outputs)
{
    __shared__ Part images[GROUPS][(IMAGES * PIXELS + SIDE - 1) / SIDE], results[GROUPS][(IMAGES * MADE + SIDE - 1) / SIDE];
    const INDEX first = ((INDEX)blockIdx.x * GROUPS + threadIdx.y) * IMAGES;
    if (first >= planes) return;
    const int count = planes - first < IMAGES ? (int)(planes - first) : IMAGES;
    // Images lie one behind the other, in memory as here: whole warps copy what lies together.
    const int lane = threadIdx.x;
    const Place to = place_of(images[threadIdx.y]->at);
    #pragma unroll
    for (int i = lane * LOAD; i < IMAGES * PIXELS; i += GROUP * LOAD)
        if (i < count * PIXELS) copy(to + i * UNIT, input + first * PIXELS + i, true);
    close();

    const int image = lane / LANES < count ? lane / LANES : 0, beside = lane % LANES * SIDE;
    const bool summing = lane / LANES < count && beside < OUT_WIDTH;
    const INDEX k = (first + image) % outputs;
    T taps[TAPS_Y * TAPS_X], sum[LIVE][SIDE];
    const T start = begin_with(sum, taps, weight, bias, k);
    const T* const source = images[threadIdx.y]->at + image * PIXELS;
    T* const target = results[threadIdx.y]->at + image * MADE + beside;
    const int x = beside * STRIDE_X - LEFT;
    wait<0>();
    for (int p = 0; p < OUT_HEIGHT + LIVE - 1;) {
        #pragma unroll
        for (int turn = 0; turn < LIVE; ++turn, ++p) {
            #pragma unroll
            for (int line = 0; line < STRIDE_Y; ++line) {
                const int y = p * STRIDE_Y + line - TOP;
                if (y < 0 || y >= HEIGHT) continue;
                T pixels[SPAN_X];
                #pragma unroll
                for (int i = 0; i < SPAN_X; ++i) pixels[i] = x + i >= 0 && x + i < WIDTH ? source[y * WIDTH + x + i] : (T)0;
                add(sum, taps, pixels, turn, line);
            }
            const int done = (turn + 1) % LIVE, row = p - (LIVE - 1);
            #pragma unroll
            for (int side = 0; side < SIDE; ++side) {
                if (summing && row >= 0 && row < OUT_HEIGHT && beside + side < OUT_WIDTH)
                    target[row * OUT_WIDTH + side] = sum[done][side];
                sum[done][side] = start;
            }
        }
    }
    together();
    const Stored* made = reinterpret_cast<const Stored*>(results[threadIdx.y]);
    #pragma unroll
    for (int i = lane; i < IMAGES * MADE / STORE; i += GROUP)
        if (i < count * MADE / STORE) reinterpret_cast<Stored*>(output + first * MADE)[i] = made[i];
}
"""
)


@implementation(
    device="cuda",
    family="direct",
    summary="CuPy raw kernel: one channel an output, rows streamed through shared memory",
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
    (_, channels, height, width), taps, (n, k, p, q) = input, weight[2:], output
    itemsize = 8 if dtype == "float64" else 4
    side, planes = WIDEST // itemsize, n * k
    across = -(-q // side)  # threads for a row of outputs
    heavy = math.prod(taps) >= HEAVY
    live, span = (taps[0] - 1) * dilation[0] // stride[0] + 1, (side - 1) * stride[1] + (taps[1] - 1) * dilation[1] + 1
    registers = (live * side + math.prod(taps) + span) * itemsize // 4  # for sums, taps and what is seen of a row
    if registers > REGISTERS:
        return None
    constants = {"LIVE": live, "SPAN_X": span}
    constants |= {"TAPS_Y": taps[0], "STRIDE_Y": stride[0], "DILATION_Y": dilation[0]}
    constants |= {"TAPS_X": taps[1], "STRIDE_X": stride[1], "DILATION_X": dilation[1]}
    elements = max(math.prod(input), math.prod(weight), math.prod(output))
    shapes = _shapes(across, planes, heavy)
    group, _, lanes, images = shapes[0]
    # What is counted: elements, those of the images of a group that has no more, and below the coordinates that are seen.
    counted = elements + images * max(height * width, p * q)
    far = max(padding + (size + live + side) * step for padding, size, step in zip(before, (p, q), stride, strict=True))
    whole = group // lanes * (height * width + p * q) * itemsize
    if images > 1 and group == WARP and k == channels and whole * FEWEST <= SHARED and far < 2**31:
        together = math.gcd(load, images * height * width, planes * height * width)
        constants |= {"GROUP": group, "GROUPS": WARPS, "IMAGES": images, "LANES": lanes, "TOP": before[0], "LEFT": before[1]}
        constants |= {"HEIGHT": height, "WIDTH": width, "OUT_HEIGHT": p, "OUT_WIDTH": q}
        constants |= {"LOAD": together, "STORE": math.gcd(store, images * p * q, planes * p * q)}
        blocks = -(-planes // (images * WARPS))
        constants["INDEX"] = "int" if counted + blocks * WARPS * images < 2**31 else "long long"
        kernel = raw_kernel(SMALL, "conv2d", dtype, **constants)
        return kernel, (blocks,), (WARP, WARPS), (cupy.int64(planes), cupy.int32(k))

    load, store = math.gcd(load, width), math.gcd(store, q)
    shift = -before[1] % load  # from where `load` elements may be read at once to the strip's first pixel
    parts, lines = -(-(shift + span) // side), live * stride[0]
    ahead = AHEAD if live < LONG else 2
    for group, groups, lanes, images in shapes:
        pitch = ((lanes - 1) * stride[1] + parts) * side
        rounds, rest = divmod(images * pitch // load, group)
        sources = rounds - (-lines * rest // group)  # registers for where a thread's copies come from
        if ahead * groups * lines * images * pitch * itemsize <= SHARED and registers + sources <= REGISTERS:
            break
    else:
        return None
    strips_x, deep = -(-q // (lanes * side)), -(-planes // images)
    resident = MULTIPROCESSOR // (group * groups * (registers + sources + OTHERS))
    if live < LONG:
        tall = even(p, max(1, min(TALL, p * strips_x * deep * group // (WARP * BUSY))))
    else:
        tall = _tall(p, strips_x * deep, multiprocessors(), resident * groups, live)
    strips_y = -(-p // tall)
    blocks = -(-strips_x * strips_y * deep // groups)
    reach = (
        (strips_y + 1) * tall * stride[0] + (ahead + 2) * lines + before[0],
        (strips_x + 1) * lanes * side * stride[1] + pitch + before[1],
    )
    # Beyond the last row of the last image nothing is stored or read, but counted.
    beyond = (tall + live) * q + (ahead + 2) * lines * width
    counted = elements + images * max(height * width, p * q) + beyond + blocks * groups
    constants |= {"INDEX": "int" if max(*reach, counted) < 2**31 else "long long", "GROUP": group, "GROUPS": groups}
    constants |= {"IMAGES": images, "LANES": lanes, "PITCH": pitch, "AHEAD": ahead, "MULTIPLIER": k // channels}
    constants |= {"LOAD": load, "SHIFT": shift, "STORE": store, "RESIDENT": resident}
    numbers = (strips_x, strips_y, tall, height, width, k, p, q, *before)
    kernel = raw_kernel(STREAM, "conv2d", dtype, **constants)
    return kernel, (blocks,), (group, groups), (cupy.int64(planes), *map(cupy.int32, numbers))


def _shapes(across, planes, heavy):
    """What a block may be, the fastest first and what needs less memory after it.

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


def _tall(rows, others, multiprocessors, resident, live):
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
