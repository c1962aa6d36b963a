"""Winograd's F(4x4, 3x3) in Numba, vectors along channels, products by a micro-kernel of our own, threaded.

Lavin and Gray, arXiv 1509.09308; the points 0, 1, -1, 2, -2 and infinity. Every 6x6 tile of the image is transformed, its 36
numbers are multiplied channel by channel as 36 matrix products, and 4x4 outputs come back: a quarter of
2 N K P Q (C/g) R S FLOPs in the products, and the transforms. The products keep 14 tiles by two vectors of outputs in
registers (Goto and van de Geijn, doi 10.1145/1356052.1356053); each thread takes a block of outputs, transforms its weights
just before it needs them, and brings back 56 tiles at a time, so that its part of the work stays in its own cache.
The extra memory: 4 MB of transformed tiles, or one row of tiles if that is more, and for each thread 36 C/g transformed
weights for each of the 32 (16 in float64) outputs of its block and 0.3 MB of products. Rounds more than a direct sum.
Numba's own loops keep sums in memory, so the innermost kernels are written in LLVM's instructions.
"""

from collections import namedtuple

import numpy as np
from llvmlite import ir
from numba import get_num_threads, njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

from impls import checks
from impls.contract import implementation
from impls.conv2d import geometry
from impls.numba_conditions import wide_vectors

WORK = 4 << 20  # bytes of transformed tiles at a time, which all threads share: they should not leave the outer cache
WIDE = wide_vectors()
WIDTH = 64 if WIDE else 32  # bytes of a vector; wider than the machine's, LLVM takes two for one
PACK = 14 if WIDE else 6  # tiles that the registers hold sums of, beside two vectors of weights
PACKS = 4  # packs of tiles from products to outputs at a time
DEPTH = 128  # channels whose weights are transformed, then used
KEPT = {"cache": True, "nogil": True, "fastmath": {"contract"}}


class _Vectors:
    """LLVM's vector instructions on pointers to one kind of number."""

    def __init__(self, context, builder, dtype):
        self.builder = builder
        self.kind = context.get_value_type(dtype)
        self.size = context.get_abi_sizeof(self.kind)
        self.lanes = WIDTH // self.size
        self.type = ir.VectorType(self.kind, self.lanes)

    def number(self, value):
        return ir.Constant(ir.IntType(64), value) if isinstance(value, int) else value

    def at(self, pointer, *steps):
        """The pointer moved by steps: numbers, values, or pairs of a value and how many times."""
        for step in steps:
            pair = step if isinstance(step, tuple) else (step, 1)
            pointer = self.builder.gep(pointer, [self.builder.mul(*map(self.number, pair))])
        return pointer

    def mask(self, count):
        """Of the lanes, those before `count`."""
        words = ir.VectorType(ir.IntType(64), self.lanes)
        return self.builder.icmp_signed("<", ir.Constant(words, list(range(self.lanes))), self.spread(count, words))

    def load(self, pointer, mask=None):
        """A vector; zero where a mask is not set, and memory there is not read."""
        pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        if mask is not None:
            align = ir.Constant(ir.IntType(32), self.size)
            return self._masked("load", self.type, pointer, align, mask, ir.Constant(self.type, None))
        found = self.builder.load(pointer)
        found.align = self.size
        return found

    def store(self, value, pointer, mask=None):
        pointer = self.builder.bitcast(pointer, self.type.as_pointer())
        if mask is not None:
            self._masked("store", ir.VoidType(), value, pointer, ir.Constant(ir.IntType(32), self.size), mask)
        else:
            self.builder.store(value, pointer).align = self.size

    def _masked(self, what, returned, *operands):
        name = f"llvm.masked.{what}.v{self.lanes}f{8 * self.size}.p0"
        kind = ir.FunctionType(returned, [operand.type for operand in operands])
        return self.builder.call(cgutils.get_or_insert_function(self.builder.module, kind, name), operands)

    def spread(self, value, into=None):
        one = ir.Constant(into or self.type, ir.Undefined)
        one = self.builder.insert_element(one, value, ir.Constant(ir.IntType(32), 0))
        return self.shuffle(one, one, [0] * self.lanes)

    def shuffle(self, a, b, places):
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), places))

    def add(self, a, b):
        return self.builder.fadd(a, b, flags=("contract",))

    def fma(self, a, b, c=None):
        """a * b + c, in one instruction where the machine has it; a number is meant for every lane."""
        a = ir.Constant(self.type, [a] * self.lanes) if isinstance(a, float) else a
        product = self.builder.fmul(a, b, flags=("contract",))
        return product if c is None else self.add(product, c)


def _emitted(write, *arguments):
    """What an intrinsic returns whose instructions write(vectors, *values) emits: arrays come to it as pointers."""

    def generate(context, builder, signature, values):
        given = [
            context.make_array(kind)(context, builder, value).data if isinstance(kind, types.Array) else value
            for kind, value in zip(signature.args, values, strict=True)
        ]
        write(_Vectors(context, builder, signature.args[0].dtype), *given)
        return context.get_dummy_value()

    kinds = [kind if isinstance(kind, types.Array) else types.intp for kind in arguments]
    return types.void(*kinds), generate


@intrinsic
def _multiply(context, weights, i, tiles, j, sums, m, channels, count, more):
    """sums[m:] = weights[i:].T @ tiles[j:], or that added, for `count` tiles and two vectors of outputs, all in registers."""

    def write(v, weights, i, tiles, j, sums, m, channels, count, more):
        weights, tiles, sums = v.at(weights, i), v.at(tiles, j), v.at(sums, m)
        added = v.builder.icmp_signed("!=", more, v.number(0))
        end = v.builder.append_basic_block("end")
        choice = v.builder.switch(count, end)
        for pack in range(1, PACK + 1):
            block = v.builder.append_basic_block(f"pack{pack}")
            choice.add_case(v.number(pack), block)
            v.builder.position_at_end(block)
            totals = [cgutils.alloca_once(v.builder, v.type) for _ in range(2 * pack)]
            for total in totals:
                v.builder.store(ir.Constant(v.type, None), total)
            with v.builder.if_then(added):
                for place, total in enumerate(totals):
                    v.builder.store(v.load(v.at(sums, place * v.lanes)), total)
            with cgutils.for_range(v.builder, channels) as loop:
                c = loop.index
                pair = [v.load(v.at(weights, (c, 2 * v.lanes), half)) for half in (0, v.lanes)]
                # Tiles lie as the transform stores them: vectors of channels, one for each tile of the pack.
                lane, whole = v.builder.and_(c, v.number(v.lanes - 1)), v.builder.and_(c, v.number(-v.lanes))
                column = v.at(tiles, lane, (whole, pack))
                for tile in range(pack):
                    value = v.spread(v.builder.load(v.at(column, tile * v.lanes)))
                    for weight, total in zip(pair, totals[2 * tile : 2 * tile + 2], strict=True):
                        v.builder.store(v.fma(value, weight, v.builder.load(total)), total)
            for place, total in enumerate(totals):
                v.store(v.builder.load(total), v.at(sums, place * v.lanes))
            v.builder.branch(end)
        v.builder.position_at_end(end)

    return _emitted(write, weights, i, tiles, j, sums, m, channels, count, more)


@intrinsic
def _transpose(context, source, i, pitch, target, j, step, rows, columns, width):
    """target[j + step * b + a] = source[i + pitch * a + b] for b < columns and a < width; zero from a = rows on.

    A vector's lanes are the most that each of the three may be.
    """

    def write(v, source, i, pitch, target, j, step, rows, columns, width):
        source, target = v.at(source, i), v.at(target, j)
        wanted, nothing = v.mask(columns), ir.Constant(ir.VectorType(ir.IntType(1), v.lanes), None)
        block = []
        for a in range(v.lanes):
            # A row that is not there is not looked at, not even behind a mask: that could cost a fault.
            there = v.builder.icmp_signed("<", v.number(a), rows)
            place = v.builder.select(there, v.at(source, (pitch, a)), source)
            block.append(v.load(place, v.builder.select(there, wanted, nothing)))
        half = v.lanes // 2
        while half:
            # Blocks of half x half change places across the diagonal.
            near = [lane + v.lanes - half if lane & half else lane for lane in range(v.lanes)]
            far = [lane + v.lanes if lane & half else lane + half for lane in range(v.lanes)]
            for a in range(v.lanes):
                if not a & half:
                    pair = block[a], block[a + half]
                    block[a], block[a + half] = v.shuffle(*pair, near), v.shuffle(*pair, far)
            half //= 2
        kept = v.mask(width)
        for b in range(v.lanes):
            with v.builder.if_then(v.builder.icmp_signed("<", v.number(b), columns)):
                v.store(block[b], v.at(target, (step, b)), kept)

    return _emitted(write, source, i, pitch, target, j, step, rows, columns, width)


def _transform(size, points):
    """An intrinsic that takes points() of size x size vectors along their columns, then along the rows of what came out.

    The vector at (y, x) is source[i + down * y + right * x:]; what comes out lies in the same way from target[j:] on.
    """

    @intrinsic
    def transform(context, source, i, down, right, target, j, line, step):
        def write(v, source, i, down, right, target, j, line, step):
            source, target = v.at(source, i), v.at(target, j)
            columns = [points(v, [v.load(v.at(source, (down, y), (right, x))) for y in range(size)]) for x in range(size)]
            for y, row in enumerate(zip(*columns, strict=True)):
                for x, value in enumerate(points(v, row)):
                    v.store(value, v.at(target, (line, y), (step, x)))

        return _emitted(write, source, i, down, right, target, j, line, step)

    return transform


def _of_pixels(v, d):
    far, odd = v.fma(-4.0, d[2], d[4]), v.fma(-4.0, d[1], d[3])
    near, twice = v.builder.fsub(d[4], d[2]), v.builder.fsub(d[3], d[1])
    ends = v.fma(4.0, d[0], v.fma(-5.0, d[2], d[4])), v.fma(4.0, d[1], v.fma(-5.0, d[3], d[5]))
    middle = v.add(far, odd), v.builder.fsub(far, odd), v.fma(2.0, twice, near), v.fma(-2.0, twice, near)
    return ends[0], *middle, ends[1]


def _of_weights(v, g):
    ones, twos = v.fma(-1 / 6, v.add(g[0], g[2])), v.fma(1 / 24, v.fma(4.0, g[2], g[0]))
    middle = [v.fma(factor, g[1], sums) for factor, sums in ((-1 / 6, ones), (1 / 6, ones), (1 / 12, twos), (-1 / 12, twos))]
    return v.fma(1 / 4, g[0]), *middle, g[2]


def _of_products(v, m):
    ones, less, twos, fewer = v.add(m[1], m[2]), v.builder.fsub(m[1], m[2]), v.add(m[3], m[4]), v.builder.fsub(m[3], m[4])
    ends = v.add(v.add(m[0], ones), twos), v.add(v.fma(8.0, fewer, less), m[5])
    return ends[0], v.fma(2.0, fewer, less), v.fma(4.0, twos, ones), ends[1]


_forward, _forward_weights, _backward = _transform(6, _of_pixels), _transform(3, _of_weights), _transform(6, _of_products)


# The rows of tiles that are dealt with together: `count` tiles from the tile `first` of the batch on, in packs. Transformed,
# they lie as [group][pack][36][vector of channels][tile of the pack][channel of the vector], a vector more after each of the
# 36, so that they do not all map to the same set of the cache; `deep` is the number of channels in whole vectors.
Plan = namedtuple("Plan", "tiles_y tiles_x first count packs deep lanes pad_y pad_x")


@njit(**KEPT)
def _aligned(array):
    """Where in a flat array the first whole line of the cache begins."""
    return -array.ctypes.data % 64 // array.itemsize


@njit(**KEPT)
def _tiles(plan, image, channel, c, present, row, tiles, start):
    """Transform one row of tiles of a vector of channels, of which some are present; c counts them within the group."""
    _, channels, height, width = image.shape
    lanes, flat = plan.lanes, image.reshape(-1)
    pitch = (4 * plan.tiles_x + 2) * lanes
    lines = np.zeros(6 * pitch + lanes, image.dtype)
    edge = _aligned(lines)
    n, top = row // plan.tiles_y, row % plan.tiles_y * 4 - plan.pad_y
    for y in range(max(0, -top), min(6, height - top)):
        source = ((n * channels + channel) * height + top + y) * width
        for x in range(0, width, lanes):
            target, some = edge + y * pitch + (x + plan.pad_x) * lanes, min(lanes, width - x)
            _transpose(flat, source + x, height * width, lines, target, lanes, present, some, lanes)
    for x in range(plan.tiles_x):
        tile = row * plan.tiles_x + x - plan.first
        pack = ((tile + 1) * plan.packs - 1) // plan.count
        begin, end = pack * plan.count // plan.packs, (pack + 1) * plan.count // plan.packs
        size = end - begin
        place = start + 36 * (begin * plan.deep + pack * lanes) + c * size + (tile - begin) * lanes
        point = size * plan.deep + lanes
        _forward(lines, edge + 4 * x * lanes, pitch, lanes, tiles, place, 6 * point, point)


@njit(**KEPT)
def _weights(weight, k, present, c, count, taps, weights, start, step, lanes):
    """Transform the kernels of `count` channels from c on, for a vector of outputs from k on, of which some are present."""
    channels, flat = weight.shape[1], weight.reshape(-1)
    for begin in range(0, count, lanes):
        n = 9 * min(lanes, count - begin)
        source = (k * channels + c + begin) * 9
        for x in range(0, n, lanes):
            _transpose(flat, source + x, channels * 9, taps, x * lanes, lanes, present, min(lanes, n - x), lanes)
        for i in range(n // 9):
            target = start + (begin + i) * 2 * lanes
            _forward_weights(taps, 9 * i * lanes, 3 * lanes, lanes, weights, target, 6 * step, step)


@njit(**KEPT)
def _outputs(plan, sums, start, first, count, lines, output, k, present):
    """Bring the sums of `count` tiles back as a vector of outputs from k on, of which some are present."""
    _, outputs, height, width = output.shape
    lanes, flat = plan.lanes, output.reshape(-1)
    done = 0
    while done < count:
        row, x = (first + done) // plan.tiles_x, (first + done) % plan.tiles_x
        run = min(plan.tiles_x - x, count - done)
        pitch = 4 * run * lanes
        for i in range(run):
            source, point = start + (done + i) * 2 * lanes, (2 * count + 1) * lanes
            _backward(sums, source, 6 * point, point, lines, 4 * i * lanes, pitch, lanes)
        n, y = row // plan.tiles_y, row % plan.tiles_y * 4
        columns = min(4 * run, width - 4 * x)
        for i in range(min(4, height - y)):
            target = ((n * outputs + k) * height + y + i) * width + 4 * x
            for q in range(0, columns, lanes):
                some = min(lanes, columns - q)
                source = i * pitch + q * lanes
                _transpose(lines, source, lanes, flat, target + q, height * width, some, present, some)
        done += run


@njit(**KEPT)
def _block(plan, tiles, start, begin, stop, weight, k, present, bias, place, output):
    """Two vectors of outputs from k on, of which some are present, for packs begin to stop: weights, products, outputs."""
    channels, lanes, pair = weight.shape[1], plan.lanes, 2 * plan.lanes
    depth = min(DEPTH, channels)
    # One more line, since 36 numbers of a kernel a power of two apart would all map to one set of the cache.
    point_step = depth * pair + lanes
    weights = np.empty(36 * point_step * -(-channels // depth) + lanes, weight.dtype)
    sums = np.empty(36 * (pair * PACKS * PACK + lanes) + lanes, weight.dtype)
    taps = np.empty(9 * lanes * lanes, weight.dtype)
    lines = np.empty(16 * lanes * PACKS * PACK, weight.dtype)
    first_weight, first_sum = _aligned(weights), _aligned(sums)
    steps = (stop - begin + PACKS - 1) // PACKS
    for step in range(steps):
        low, high = begin + step * (stop - begin) // steps, begin + (step + 1) * (stop - begin) // steps
        origin = low * plan.count // plan.packs
        count = high * plan.count // plan.packs - origin
        point_sums = (2 * count + 1) * lanes
        # The eighth product reaches all outputs of a tile as it is: it starts from the bias.
        for tile in range(count):
            at = first_sum + 7 * point_sums + tile * pair
            sums[at : at + pair] = bias[place : place + pair]
        for c in range(0, channels, depth):
            some = min(depth, channels - c)
            here = first_weight + c // depth * 36 * point_step
            if step == 0:
                for half in range(0, pair, lanes):
                    part = max(0, min(lanes, present - half))
                    row = k + half if part else k
                    _weights(weight, row, part, c, some, taps, weights, here + half, point_step, lanes)
            for point in range(36):
                for pack in range(low, high):
                    tile = pack * plan.count // plan.packs
                    wide = (pack + 1) * plan.count // plan.packs - tile
                    source = start + 36 * (tile * plan.deep + pack * lanes) + point * (wide * plan.deep + lanes) + c * wide
                    target = first_sum + point * point_sums + (tile - origin) * pair
                    at, more = here + point * point_step, c > 0 or point == 7
                    _multiply(weights, at, tiles, source, sums, target, some, wide, more)
        for half in range(0, min(pair, present), lanes):
            at, part = first_sum + half, min(lanes, present - half)
            _outputs(plan, sums, at, plan.first + origin, count, lines, output, k + half, part)


@njit(parallel=True, **KEPT)
def _rows(plan, image, weight, bias, output, tiles, threads):
    """The outputs of the plan's tiles. A bias for every output of every pair of vectors, in order."""
    channels, lanes = weight.shape[1], plan.lanes
    groups = image.shape[1] // channels
    outputs = len(weight) // groups
    start, size = _aligned(tiles), 36 * (plan.count * plan.deep + plan.packs * lanes)
    rows, blocks = plan.count // plan.tiles_x, plan.deep // lanes
    for job in prange(groups * blocks * rows):
        row, block = plan.first // plan.tiles_x + job % rows, job // rows
        group, c = block // blocks, block % blocks * lanes
        _tiles(plan, image, group * channels + c, c, min(lanes, channels - c), row, tiles, start + group * size)
    pairs = len(bias) // groups // (2 * lanes)
    # Where the outputs do not go round, threads share the tiles too, and each transforms its weights for itself.
    jobs = groups * pairs
    parts = 1 if jobs % threads == 0 or jobs > 4 * threads else min(threads, (plan.packs + PACKS - 1) // PACKS)
    for job in prange(jobs * parts):
        part, pair = job % parts, job // parts
        group, k = pair // pairs, pair % pairs * 2 * lanes
        begin, stop = part * plan.packs // parts, (part + 1) * plan.packs // parts
        present, place = min(2 * lanes, outputs - k), pair * 2 * lanes
        _block(plan, tiles, start + group * size, begin, stop, weight, group * outputs + k, present, bias, place, output)


@implementation(
    device="cpu",
    family="winograd",
    summary="Numba: Winograd F(4x4, 3x3), vectors along channels",
    limits={"kernel": (3, 3), "stride": 1, "dilation": 1},
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = geometry.empty(input, weight, stride, padding, dilation, out)
    n, outputs, p, q = output.shape
    outputs //= groups
    lanes = WIDTH // input.itemsize
    deep, wide = -(-weight.shape[1] // lanes) * lanes, -(-outputs // (2 * lanes)) * 2 * lanes
    tiles_y, tiles_x = (p + 3) // 4, (q + 3) // 4
    most = max(1, WORK // (36 * deep * groups * tiles_x * input.itemsize))
    count = tiles_x * min(most, n * tiles_y)
    size = 36 * groups * (deep * count + lanes * -(-count // PACK)) + lanes
    threads = get_num_threads()
    work = size + threads * 72 * lanes * (deep + DEPTH + PACKS * PACK)
    checks.require_memory(work * input.itemsize + input.nbytes + output.nbytes, "Winograd's tiles, products and weights")
    image, factors, tiles = np.ascontiguousarray(input), np.ascontiguousarray(weight), np.empty(size, input.dtype)
    start = np.zeros((groups, wide), input.dtype)
    if bias is not None:
        start[:, :outputs] = bias.reshape(groups, outputs)
    for first in range(0, n * tiles_y, most):
        count = min(most, n * tiles_y - first) * tiles_x
        plan = Plan(tiles_y, tiles_x, first * tiles_x, count, -(-count // PACK), deep, lanes, padding[0][0], padding[1][0])
        _rows(plan, image, factors, start.reshape(-1), output, tiles, threads)
    return geometry.if_finite(output, input, weight, bias, stride, padding, dilation, groups)
