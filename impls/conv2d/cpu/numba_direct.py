"""Direct convolution in Numba, sums of up to 24 vectors along the rows kept in registers, threaded.

2 N K P Q (C/g) R S FLOPs. Direct convolution without packing (Zhang, Franchetti and Low, arXiv 1809.10170): the sums of
several output rows, of one to four output channels, stay in registers while each vector of input is loaded once for all of
them. The input is read where it lies and masks leave padding out: no extra memory, but where the stride along the row is
not 1: there each thread first sorts the rows it needs by their place in the step, a copy of a few rows of all channels.
Numba's own loops keep sums in memory, so the innermost kernel is written in LLVM's instructions.
"""

from collections import namedtuple
from functools import lru_cache
from itertools import combinations_with_replacement, product
from types import SimpleNamespace

import numpy as np
from llvmlite import ir
from numba import get_num_threads, njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.unsafe.ndarray import to_fixed_tuple

from impls.contract import implementation
from impls.conv2d.geometry import empty
from impls.numba_conditions import wide_vectors

WIDE = wide_vectors()
WIDTH = 64 if WIDE else 32  # bytes of a vector; wider than the machine's, LLVM takes two for one
AHEAD = 8  # vectors along the row that are prefetched
KEPT = {"cache": True, "nogil": True, "fastmath": {"contract"}}


def form(together, vectors, solid):
    """The form of a block in tuples whose lengths Numba takes for a part of their type, so that kernels are made to measure.

    Its output channels, rows, most vectors along a row, and the size of the kernel if it is known: of 24 sums or 12.
    """
    if vectors > 2 and together < 4:
        rows, widest = 6 // together, 4
    else:
        rows, widest = (8, 6, 4, 3)[together - 1], 2
    return tuple((0,) * count for count in (together, rows if WIDE else max(1, rows // 2), widest, solid))


# What is the same for all blocks of a call. `channels` are a group's. A unit is the step from one row of taps to the next,
# `unit` rows of input; `step` units lead from an output row of a block to the next, and the tallest block sees `units`.
# `line` and `plane` lead from a unit and from an input channel to the next in memory. `sets` of output rows, one for each
# residue where rows are dilated, share no row of input. A row has `vectors` of `lanes` outputs, a window `reach` pixels
# behind its first; `pitch` numbers have the same residue by the stride along the row.
Plan = namedtuple(
    "Plan",
    "planes height width outputs height_out width_out channels taps_y taps_x stride_y stride_x pad_y pad_x "
    "unit step units sets line plane vectors lanes reach pitch",
)
FIELDS = len(Plan._fields)


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

    def times(self, a, b):
        return self.builder.mul(self.number(a), self.number(b))

    def at(self, pointer, *steps):
        """The pointer moved by steps: numbers, values, or pairs of a value and how many times."""
        for step in steps:
            moved = self.times(*step) if isinstance(step, tuple) else self.number(step)
            pointer = self.builder.gep(pointer, [moved])
        return pointer

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

    def fetch(self, pointer, write):
        """Prefetch memory into the cache; invalid addresses do no harm."""
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), word, word, word])
        call = cgutils.get_or_insert_function(self.builder.module, kind, "llvm.prefetch.p0")
        pointer = self.builder.bitcast(pointer, ir.IntType(8).as_pointer())
        self.builder.call(call, [pointer, *(ir.Constant(word, value) for value in (write, 3, 1))])

    def mask(self, bits):
        """The mask whose lanes are the lowest bits of a number."""
        lowest = self.builder.trunc(bits, ir.IntType(self.lanes))
        return self.builder.bitcast(lowest, ir.VectorType(ir.IntType(1), self.lanes))

    def spread(self, value, into=None):
        one = ir.Constant(into or self.type, ir.Undefined)
        one = self.builder.insert_element(one, value, ir.Constant(ir.IntType(32), 0))
        return self.builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None))

    def fma(self, a, b, c):
        """a * b + c, in one instruction where the machine has it."""
        return self.builder.fadd(self.builder.fmul(a, b, flags=("contract",)), c, flags=("contract",))


@intrinsic
def _sums(context, form, plan, image, lines, i, weight, w, bias, k, output, o, steps, rows, low, high, masks, m, wide, edge):
    """One block of a form: its output channels from k on, `rows` output rows, `wide` vectors along them, all in registers.

    image[i:], or lines[i:] where rows are sorted, is where the block's first window begins; its units low to high are there.
    At an edge masks say which lanes are: of the input for every tap along the row, and last of the output. A kernel whose
    size is known is written out tap by tap. For others `steps` has for each unit and tap along the row: which rows
    of the block it serves, first * tallest + last, and the places of the pixel, of the first row's tap and of the mask.
    """
    outputs, tall, widest, taps = (len(part) for part in form)

    def spread(v, plan, tap, k):
        return v.spread(v.builder.load(v.at(tap, (plan.kernel, k))))

    def add(v, plan, totals, line, rows, taps, mask):
        """Add to the totals of some rows what a vector's worth of pixels at line contributes by their taps."""
        shown = [mask and v.mask(v.builder.load(v.at(mask, x))) for x in range(len(totals[0][0]))]
        pixels = [v.load(v.at(line, x * v.lanes), lit) for x, lit in enumerate(shown)]
        for (p, tap), k in product(zip(rows, taps, strict=True), range(outputs)):
            factor = tap[k] if isinstance(tap, list) else spread(v, plan, tap, k)
            for x, total in enumerate(totals[k][p]):
                v.builder.store(v.fma(factor, pixels[x], v.builder.load(total)), total)

    def written_out(v, plan, totals, source, weight, steps, low, high, masks):
        b = v.builder
        factors = [v.at(weight, tap) for tap in range(taps * taps)]
        if outputs * (tall * len(totals[0][0]) + taps * taps) < 28:  # enough registers for all taps beside the sums
            factors = [[spread(v, plan, tap, k) for k in range(outputs)] for tap in factors]
        for unit in range(tall + taps - 1):
            there = b.and_(b.icmp_signed("<=", low, v.number(unit)), b.icmp_signed("<", v.number(unit), high))
            with b.if_then(there):
                line = v.at(source, (plan.line, unit))
                if masks is None:
                    for x in range(len(totals[0][0])):
                        v.fetch(v.at(line, (x + AHEAD) * v.lanes), 0)
                rows = range(max(0, unit - taps + 1), min(tall, unit + 1))
                for s in range(taps):
                    mask = masks and v.at(masks, (plan.vectors, s))
                    add(v, plan, totals, v.at(line, s), rows, [factors[(unit - p) * taps + s] for p in rows], mask)

    def walked(v, plan, totals, source, weight, steps, low, high, masks):
        b = v.builder
        back, start, stop = (b.mul(count, plan.taps_x) for count in (plan.step, low, high))
        with cgutils.for_range_slice(b, start, stop, v.number(1)) as (step, _):
            which, place, tap, shown = (b.load(v.at(steps, (step, 4), word)) for word in range(4))
            here, tap = v.at(source, place), v.at(weight, tap)
            mask = masks and v.at(masks, shown)
            done = b.append_basic_block("done")
            choice = b.switch(which, done)
            for first, last in combinations_with_replacement(range(tall), 2):
                block = b.append_basic_block(f"rows{first}to{last}")
                choice.add_case(v.number(first * tall + last), block)
                b.position_at_end(block)
                rows = range(first, last + 1)
                add(v, plan, totals, here, rows, [v.at(tap, (back, first - p)) for p in rows], mask)
                b.branch(done)
            b.position_at_end(done)

    def block(v, plan, width, way, source, weight, bias, output, steps, rows, low, high, masks):
        b = v.builder
        totals = [[[cgutils.alloca_once(b, v.type) for _ in range(width)] for _ in range(tall)] for _ in range(outputs)]
        for k, p, x in product(range(outputs), range(tall), range(width)):
            b.store(v.spread(b.load(v.at(bias, k))), totals[k][p][x])
            if masks is None:
                v.fetch(v.at(output, (plan.line_out, p), (plan.plane_out, k), (x + AHEAD) * v.lanes), 1)
        with cgutils.for_range(b, plan.channels) as by_channel:
            c = by_channel.index
            way(v, plan, totals, v.at(source, (c, plan.plane)), v.at(weight, (c, plan.taps)), steps, low, high, masks)
        shown = masks and v.at(masks, (plan.taps_x, plan.vectors))
        kept = [masks and v.mask(b.load(v.at(shown, x))) for x in range(width)]
        for p in range(tall):
            with b.if_then(b.icmp_signed("<", v.number(p), rows)):
                for k in range(outputs):
                    target = v.at(output, (plan.line_out, p), (plan.plane_out, k))
                    for x, mask in enumerate(kept):
                        v.store(b.load(totals[k][p][x]), v.at(target, x * v.lanes), mask)

    def generate(context, builder, signature, values):
        v, b = _Vectors(context, builder, image.dtype), builder
        plan = SimpleNamespace(**dict(zip(Plan._fields, cgutils.unpack_tuple(b, values[1], len(Plan._fields)), strict=True)))
        plan.taps, plan.kernel = b.mul(plan.taps_y, plan.taps_x), b.mul(b.mul(plan.taps_y, plan.taps_x), plan.channels)
        plan.line_out, plan.plane_out = b.mul(plan.sets, plan.width_out), b.mul(plan.height_out, plan.width_out)

        def pointer(place, moved):
            return v.at(context.make_array(signature.args[place])(context, b, values[place]).data, moved)

        straight = b.icmp_signed("==", plan.stride_x, v.number(1))
        source = b.select(straight, pointer(2, values[4]), pointer(3, values[4]))
        weight, bias, output = (pointer(place, values[place + 1]) for place in (5, 7, 9))
        walk = v.at(pointer(11, 0), (b.mul(values[12], plan.units), b.mul(plan.taps_x, v.number(4))))
        masks, (rows, low, high) = pointer(15, values[16]), values[12:15]
        end = b.append_basic_block("end")
        choice = b.switch(b.add(v.times(values[17], 2), values[18]), end)
        for width, masked in product(range(1, widest + 1), (0, 1)):
            here = b.append_basic_block(f"wide{width}masked{masked}")
            choice.add_case(v.number(2 * width + masked), here)
            b.position_at_end(here)
            # Larger kernels are written out only where most blocks are, since compiling takes long.
            way = written_out if taps == 3 or (taps and width == widest and not masked) else walked
            block(v, plan, width, way, source, weight, bias, output, walk, rows, low, high, masks if masked else None)
            b.branch(end)
        b.position_at_end(end)
        return context.get_dummy_value()

    word = types.intp
    arrays = image, lines, word, weight, word, bias, word, output, word, steps, word, word, word, masks, word, word, word
    return types.void(form, plan, *arrays), generate


@intrinsic
def _pairs(context, image, i, columns, pad, lines, j, pitch):
    """Deal the numbers of a row at image[i:], with `pad` zeros before them and zeros behind, out to two lines in turn."""

    def generate(context, builder, signature, values):
        v, b, half = _Vectors(context, builder, image.dtype), builder, ir.IntType(32)
        source, lines = (context.make_array(signature.args[k])(context, b, values[k]).data for k in (0, 4))
        source, lines = v.at(source, values[1]), v.at(lines, values[5])
        count = ir.VectorType(half, v.lanes)
        with cgutils.for_range_slice(b, v.number(0), values[6], v.number(v.lanes)) as (x, _):
            found = []
            for part in range(2):
                column = b.add(b.sub(v.times(x, 2), values[3]), v.number(part * v.lanes))
                lane = b.add(v.spread(b.trunc(column, half), count), ir.Constant(count, list(range(v.lanes))))
                # Compared without sign, what lies before the row is far behind it.
                there = b.icmp_unsigned("<", lane, v.spread(b.trunc(values[2], half), count))
                found.append(v.load(v.at(source, column), there))
            for part in range(2):
                turn = ir.Constant(count, list(range(part, 2 * v.lanes, 2)))
                v.store(b.shuffle_vector(*found, turn), v.at(lines, x, (values[6], part)))
        return context.get_dummy_value()

    word = types.intp
    return types.void(image, word, word, word, lines, word, word), generate


@njit(**KEPT)
def _sorted(plan, image, plane, y, low, high, residues, lines):
    """Put rows of units low to high, of the channels from `plane` on, apart by residue; zeros if there is no pixel."""
    for channel in range(plan.channels):
        for unit in range(low, high):
            source = ((plane + channel) * plan.height + y + unit * plan.unit) * plan.width
            target = channel * plan.plane + unit * plan.line
            if plan.stride_x == 2:
                _pairs(image, source, plan.width, plan.pad_x, lines, target, plan.pitch)
                continue
            for phase in range(len(residues)):
                line = lines[target + phase * plan.pitch : target + (phase + 1) * plan.pitch]
                first = residues[phase] - plan.pad_x  # the column of the line's first number
                left = min(plan.pitch, max(0, -first + plan.stride_x - 1) // plan.stride_x)
                right = max(left, min(plan.pitch, (plan.width - 1 - first) // plan.stride_x + 1))
                line[:left] = 0
                line[right:] = 0
                for x in range(left, right):
                    line[x] = image[source + first + x * plan.stride_x]


@njit(**KEPT)
def _bands(together, tallest, widest, taps, plan, image, weight, bias, output, tables, planes, bands, outputs):
    """Of images and groups, counted through, `planes`: some bands of rows, of each group's output channels some."""
    steps, masks, residues, rows_of_band = tables
    shape = together, tallest, widest, taps
    lines = np.empty(plan.channels * plan.plane if plan.stride_x > 1 else 0, image.dtype)
    groups, kernel = plan.planes // plan.channels, plan.channels * plan.taps_y * plan.taps_x
    for place in range(planes[0], planes[1]):
        n, first_k = place // groups, place % groups * (plan.outputs // groups)
        for band in range(bands[0], bands[1]):
            p, rows, y, low, high = rows_of_band[band]
            start = (place * plan.channels * plan.height + y) * plan.width - plan.pad_x
            if plan.stride_x > 1:
                start = 0
                _sorted(plan, image, place * plan.channels, y, low, high, residues, lines)
            for k in range(first_k + outputs[0], first_k + outputs[1], len(together)):
                target = ((n * plan.outputs + k) * plan.height_out + p) * plan.width_out
                vector = 0
                while vector < plan.vectors:
                    wide = min(len(widest), plan.vectors - vector)
                    x, beyond = vector * plan.lanes, (vector + wide) * plan.lanes
                    edge = beyond > plan.width_out
                    if plan.stride_x == 1:
                        edge = edge or x < plan.pad_x or beyond + plan.reach - plan.pad_x > plan.width
                    arrays = image, lines, start + x, weight, k * kernel, bias, k, output, target + x
                    _sums(shape, plan, *arrays, steps, rows, low, high, masks, vector, wide, edge)
                    vector += wide


@njit(parallel=True, **KEPT)
def _blocks(
    together, tallest, widest, taps, numbers, image, weight, bias, output, steps, masks, residues, bands, begin, stop, a, b, c
):
    """The output channels begin to stop of every group, in jobs: a of images and groups, times b of bands, c of channels."""
    plan = Plan(*to_fixed_tuple(numbers, FIELDS))  # a call takes tuples in slowly: 2 us
    tables = steps, masks, residues, bands
    planes, blocks = len(image) // (plan.channels * plan.height * plan.width), (stop - begin) // len(together)
    for job in prange(a * b * c):
        i, j, k = job // (b * c), job // c % b, job % c
        some, rows = (i * planes // a, (i + 1) * planes // a), (j * len(bands) // b, (j + 1) * len(bands) // b)
        first, last = begin + k * blocks // c * len(together), begin + (k + 1) * blocks // c * len(together)
        _bands(together, tallest, widest, taps, plan, image, weight, bias, output, tables, some, rows, (first, last))


@lru_cache(maxsize=256)
def _plan(together, input_shape, weight_shape, output_shape, stride, pad, dilation, lanes):
    """The form of a call's blocks, its Plan, and its tables: steps and masks (see _sums), residues (see _sorted)."""
    channels, taps_y, taps_x = weight_shape[1:]
    height, width = input_shape[2:]
    p, q = output_shape[2:]
    vectors = -(-q // lanes)
    known = taps_y if taps_y == taps_x and stride == (1, 1) and dilation == (1, 1) else 0
    shape = form(together, vectors, known if known == 3 or (known in (5, 7) and together == 1) else 0)
    tallest = tall = len(shape[1])
    # Rows share units where the windows of neighbours do; if they are dilated, with every dilation-th other row.
    sets = min(p, dilation[0]) if stride[0] == 1 else 1
    step = stride[0] if dilation[0] == 1 else 1
    if step >= taps_y or (dilation[0] > 1 and stride[0] > 1):
        tall, step = 1, 1
    units = (tall - 1) * step + taps_y
    columns = np.arange(vectors * lanes)
    places = np.arange(taps_x) * dilation[1]
    seen = columns + places[:, None] - pad[1]
    seen = (seen >= 0) & (seen < width) if stride[1] == 1 else np.ones(seen.shape, bool)
    masks = np.concatenate([seen, columns[None] < q]).reshape(taps_x + 1, vectors, lanes) << np.arange(lanes)
    residues, line, plane, pitch = np.zeros(1, int), width * dilation[0], height * width, 0
    if stride[1] > 1:
        residues, phase = np.unique(places % stride[1], return_inverse=True)
        if stride[1] == 2:  # pairs are dealt out to both, whole vectors at a time
            residues, phase = np.arange(2), places % 2
        shifts = places // stride[1]
        pitch = (vectors + -(-int(shifts.max()) // lanes)) * lanes
        places = phase * pitch + shifts
        line = pitch * len(residues)
        plane = line * units
    unit, rows = np.arange(units)[None], np.arange(tall + 1)[:, None]
    low, high = np.maximum(0, (unit - taps_y + step) // step), np.minimum(rows - 1, unit // step)
    steps = np.empty((tall + 1, units, taps_x, 4), np.int64)
    steps[..., 0] = np.where(low <= high, low * tallest + high, -1)[..., None]
    steps[..., 1] = unit[..., None] * line + places
    steps[..., 2] = ((unit - low * step) * taps_x)[..., None] + np.arange(taps_x)
    steps[..., 3] = np.arange(taps_x) * vectors
    plan = [*input_shape[1:], *output_shape[1:], channels, taps_y, taps_x, *stride, *pad, dilation[0], step, units]
    plan += [sets, line, plane, vectors, lanes, (taps_x - 1) * dilation[1], pitch]
    # Of every band: its first output row and their number, the input's row where its first window begins, the units there.
    blocks = -(-p // (sets * tall))
    residue, block = np.divmod(np.arange(sets * blocks), blocks)
    rows = (p - residue + sets - 1) // sets
    first, rows = block * rows // blocks, (block + 1) * rows // blocks - block * rows // blocks
    y = (residue + first * sets) * stride[0] - pad[0]
    low = np.maximum(0, -(y // dilation[0]))
    high = np.minimum((rows - 1) * step + taps_y, (height - 1 - y) // dilation[0] + 1)
    bands = np.stack([residue + first * sets, rows, y, low, np.maximum(low, high)], axis=1)[rows > 0]
    tables = tuple(np.ascontiguousarray(table, np.int64) for table in (steps, masks.sum(axis=2), residues, bands))
    return shape, np.array(plan), tables


@implementation(device="cpu", family="direct", summary="Numba: blocks of output rows in registers, threaded")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, out=None):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    output = empty(input, weight, stride, padding, dilation, out)
    before, lanes = (padding[0][0], padding[1][0]), WIDTH // input.itemsize
    start = np.zeros(len(weight), input.dtype) if bias is None else np.ascontiguousarray(bias)
    flat = np.ascontiguousarray(input).reshape(-1), np.ascontiguousarray(weight).reshape(-1), start, output.reshape(-1)
    outputs, threads, done = len(weight) // groups, get_num_threads(), 0
    together = next((count for count in (4, 3, 2) if outputs % count == 0), 4 if outputs > 4 else 1)
    while done < outputs:
        stop = outputs // together * together
        shape, plan, tables = _plan(together, input.shape, weight.shape, output.shape, stride, before, dilation, lanes)
        # Enough jobs for the threads to end together, and no more: by rows before channels, which share the rows.
        wanted, planes = 1 if threads == 1 else 8 * threads, len(input) * groups
        bands = min(len(tables[3]), -(-wanted // max(1, planes)))
        channels = min((stop - done) // together, -(-wanted // max(1, planes * bands)))
        _blocks(*shape, plan, *flat, *tables, done, stop, min(planes, wanted), bands, channels)
        done, together = stop, 1
    return output
