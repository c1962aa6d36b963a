"""Checks outputs against a float64 reference with error bounds.

The reference gathers each output's window by index arithmetic on the unpadded input and sums the products in float64. It
shares no code with any implementation. Small problems are compared whole; for large ones the reference is a fixed random
sample of outputs with a pixel of every channel and every image, the corners and points along the border; and every output
is looked at for NaN and infinity. The gradients of a convolution are sums of products too, and are judged in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from benchmarks.errors import WrongAnswer
from benchmarks.workloads import operations
from benchmarks.workloads.problems import Problem

WHOLE = 2_000_000  # multiply-adds up to which every output has its reference: 50 ms once a problem, then read from disk
SAMPLE = 4_000_000  # multiply-adds spent on a larger problem's sample
MAX_SAMPLED_OUTPUTS = 16_384  # beside those of every channel, every image and the border
BORDER = 256  # of the sample, how many outputs lie on the border
CHUNK = 1 << 20  # products gathered at a time, so that a reference needs 20 MB and not the whole patch matrix

# Families whose outputs share the rounding of a tile, or may: cpu.auto picks from all but those named for FFTs, cuDNN by its
# own rules.
TILED = ("winograd", "auto", "cudnn")

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # unit roundoff


@dataclass(frozen=True)
class Reference:
    """Outputs at flat `positions` in float64, and for each the sum of |weight| |input| that bounds its rounding.

    of: which of the problem's tensors they are elements of. level: the root mean square that random signs would give the
    outputs of the whole padded images, of which stride and padding may have left hardly any to look at.
    """

    positions: np.ndarray
    values: np.ndarray
    magnitudes: np.ndarray
    of: str = "output"
    level: float = 0.0

    def negated(self) -> Reference:
        """The reference of the negated input."""
        return replace(self, values=-self.values)


@dataclass(frozen=True)
class Errors:
    """How far an output is from the reference: relative L2 norm, and the worst single error over its own bound."""

    relative_l2: float
    worst: float


def reference(problem: Problem, input: Any = None, weight: Any = None, output: Any = None, of: str = "output") -> Reference:
    """Compute the reference of a problem for input (N, C, H, W) and weight (K, C/g, R, S).

    of: the tensor that is computed, from those of the others that it depends on: the transposed convolution of an output or
    gradient (N, K, P, Q) is of the "input"; the gradients are of the "input", the "weight" and a "bias".
    """
    positions = _positions(problem, of)
    values, magnitudes = np.empty(len(positions)), np.empty(len(positions))
    step = max(1, CHUNK // max(1, operations.terms(problem, of)))
    for start in range(0, len(positions), step):
        part = slice(start, start + step)
        products = PRODUCTS[of](problem, input, weight, output, positions[part])
        values[part] = products.sum(axis=1)
        magnitudes[part] = np.abs(products, out=products).sum(axis=1)
    return Reference(positions, values, magnitudes, of, _level(problem, input, weight) if of == "output" else 0.0)


def compare(problem: Problem, family: str, known: Reference, output: np.ndarray) -> Errors:
    """Compare a whole output with the reference; return the errors.

    Raises WrongAnswer, whose text says what is wrong and where.
    """
    shape = operations.shape(problem, known.of)
    what = "the output" if known.of == "output" else f"the result like the {known.of}"
    if not isinstance(output, np.ndarray) or output.shape != shape:
        raise WrongAnswer(f"{what} has shape {getattr(output, 'shape', None)}, not {shape}")
    if str(output.dtype) != problem.dtype:
        raise WrongAnswer(f"{what} has dtype {output.dtype}, not {problem.dtype}")
    finite = np.isfinite(output)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), shape)
        raise WrongAnswer(f"{what} is {output[place]} at {_place(known.of, place)}")
    return compare_at(problem, family, known, output.reshape(-1)[known.positions])


def compare_at(problem: Problem, family: str, known: Reference, values: np.ndarray) -> Errors:
    """Compare the outputs at the reference's positions alone; return the errors or raise WrongAnswer."""
    if not len(known.positions):
        return Errors(0.0, 0.0)
    difference = np.abs(values - known.values)
    # Sums of random signs are about magnitude / sqrt(terms). Where a few outputs happen to cancel further, their own norm
    # says nothing about the rounding in them.
    terms = max(1, operations.terms(problem, known.of))
    expected = float(np.linalg.norm(known.magnitudes)) / math.sqrt(terms)
    norm = max(float(np.linalg.norm(known.values)), expected)
    if family in ("fft", *TILED):  # their rounding is that of the whole image or tile, wherever one looks
        norm = max(norm, known.level * math.sqrt(len(known.positions)))
    relative = float(np.linalg.norm(difference)) / norm if norm else float(np.linalg.norm(difference))
    allowed_l2, factor = bounds(problem, family, terms)
    allowed = np.full_like(known.magnitudes, np.inf)
    if math.isfinite(factor):
        allowed = factor * UNIT[problem.dtype] * shared(family, known.magnitudes, known.level)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(difference > 0, difference / allowed, 0.0)
    worst = int(np.argmax(np.where(np.isnan(ratios), np.inf, ratios)))
    if not (relative <= allowed_l2 and ratios[worst] <= 1):
        place = np.unravel_index(int(known.positions[worst]), operations.shape(problem, known.of))
        raise WrongAnswer(
            f"relative L2 error {relative:.1e}, allowed {allowed_l2:.1e}; "
            f"worst at {_place(known.of, place)}: {values[worst]:.6g}, not {known.values[worst]:.6g}"
        )
    return Errors(relative, float(ratios[worst]))


def bounds(problem: Problem, family: str, terms: int | None = None) -> tuple[float, float]:
    """The largest relative L2 error an algorithm of this family may show, and its largest single error in units of
    roundoff times the sum of |weight| |input|. terms: products summed for one element, an output's taps unless given.

    Direct sums: the rigorous bound of Higham (Accuracy and Stability of Numerical Algorithms, chapter 3) for each output,
    and for the norm ten times what a strictly sequential float32 sum was seen to give. Winograd: oneDNN's own bound for
    the norm (tests/benchdnn/conv/conv.cpp), twice the worst seen for single outputs. TF32 rounds inputs to 10 bits, fp16
    outputs as well; bf16 rounds both to 7 bits.
    """
    scale = UNIT[problem.dtype] / UNIT["float32"]
    terms = problem.taps if terms is None else terms
    if family in TILED:
        return 2e-5 * scale, 512.0
    if family == "tf32" and problem.dtype == "float32":
        return 1e-3, 2.0**14
    if family == "bf16":
        return 1e-2, 2.0**18
    if family == "fp16":
        return 1e-3, math.inf  # below 6e-5 numbers have fewer digits, down to none
    if family == "fft":
        # Its error is bounded by the norm of the image, not by each output's own sum: the norm alone can judge.
        return 3e-6 * scale * max(1.0, math.sqrt(terms / 5000)), math.inf
    return 3e-6 * scale * max(1.0, math.sqrt(terms / 5000)), terms + 2.0


def shared(family: str, magnitudes: np.ndarray, level: float) -> np.ndarray:
    """The sums by which each output's rounding is measured: its own or, with Winograd, whose outputs share the rounding of
    their tile, the largest of all. An output that sees nothing but padding has the rounding of the pixels beside it.
    """
    return np.full_like(magnitudes, magnitudes.max(initial=level)) if family in TILED else magnitudes


def _positions(problem: Problem, of: str = "output") -> np.ndarray:
    """The elements with a reference, as sorted flat indices."""
    # A weight's taps are sampled as the pixels of an image are, and a bias's values as its channels.
    n, k, p, q = (1, problem.k, 1, 1) if of == "bias" else operations.shape(problem, of)
    size, terms = n * k * p * q, operations.terms(problem, of)
    if size * terms <= WHOLE:
        return np.arange(size)
    generator = np.random.default_rng(0)
    count = min(MAX_SAMPLED_OUTPUTS, max(512, SAMPLE // terms))
    anywhere = generator.integers(0, size, count)
    # Border rows and columns of random images, and the four corners of the first and the last.
    along = generator.random((4, BORDER // 4))
    rows = np.concatenate([along[0] * 0, along[1] * 0 + p - 1, along[2] * p, along[3] * p]).astype(np.int64)
    columns = np.concatenate([along[0] * q, along[1] * q, along[2] * 0, along[3] * 0 + q - 1]).astype(np.int64)
    border = (generator.integers(0, n * k, len(rows)) * p + rows) * q + columns
    corners = [(i * p + y) * q + x for i in (0, n * k - 1) for y in (0, p - 1) for x in (0, q - 1)]
    # A pixel of every output channel and of every image: chance alone leaves one channel in ten of a deep layer unseen.
    channels = generator.integers(0, n, k) * k + np.arange(k)
    batch = np.arange(n) * k + generator.integers(0, k, n)
    planes = np.concatenate([channels, batch])
    everywhere = planes * (p * q) + generator.integers(0, p * q, len(planes))
    return np.unique(np.concatenate([anywhere, border, corners, everywhere]))


# Every product that enters the elements at `positions` of a tensor: (positions, terms) in float64.


def _of_output(problem: Problem, input: Any, weight: Any, output: Any, positions: np.ndarray) -> np.ndarray:
    """All c, r, s of a group's channels and taps: input[n, c, y, x] weight[k, c, r, s]."""
    n, k, p, q = _indices(problem, "output", positions)
    channels = problem.c // problem.groups
    c = (k // (problem.k // problem.groups)) * channels + np.arange(channels)[:, None, None]
    pixels = _pixels(problem, input, n, c, p, q, np.arange(problem.r)[:, None], np.arange(problem.s))
    pixels *= weight[k[:, 0, 0, 0]]
    return pixels.reshape(len(positions), problem.taps)


def _of_input(problem: Problem, input: Any, weight: Any, output: Any, positions: np.ndarray) -> np.ndarray:
    """All k, r, s of a group's outputs and taps for which some p, q saw the pixel: output[n, k, p, q] weight[k, c, r, s]."""
    n, c, y, x = _indices(problem, "input", positions)
    channels, outputs = problem.c // problem.groups, problem.k // problem.groups
    k = c // channels * outputs + np.arange(outputs)[:, None, None]
    r, s = np.arange(problem.r)[:, None], np.arange(problem.s)
    p, below = np.divmod(y + problem.padding[0] - r * problem.dilation, problem.stride)
    q, beside = np.divmod(x + problem.padding[1] - s * problem.dilation, problem.stride)
    _, _, height, width = problem.output_shape
    seen = (below == 0) & (p >= 0) & (p < height) & (beside == 0) & (q >= 0) & (q < width)
    values = output[n, k, np.clip(p, 0, height - 1), np.clip(q, 0, width - 1)].astype(np.float64)
    values *= seen
    values *= weight[k, c % channels, r, s]
    return values.reshape(len(positions), operations.terms(problem, "input"))


def _of_weight(problem: Problem, input: Any, weight: Any, output: Any, positions: np.ndarray) -> np.ndarray:
    """All n, p, q of the output: output[n, k, p, q] input[n, c, y, x]."""
    k, c, r, s = _indices(problem, "weight", positions)
    images, _, height, width = problem.output_shape
    n, p, q = np.arange(images)[:, None, None], np.arange(height)[:, None], np.arange(width)
    c = k // (problem.k // problem.groups) * (problem.c // problem.groups) + c
    values = _pixels(problem, input, n, c, p, q, r, s)
    values *= output[n, k, p, q]
    return values.reshape(len(positions), operations.terms(problem, "weight"))


def _of_bias(problem: Problem, input: Any, weight: Any, output: Any, positions: np.ndarray) -> np.ndarray:
    """All n, p, q of the output, which a bias enters as it is: output[n, k, p, q]."""
    values = output[:, positions].swapaxes(0, 1).astype(np.float64)
    return values.reshape(len(positions), operations.terms(problem, "bias"))


def _level(problem: Problem, input: Any, weight: Any) -> float:
    """See Reference: by Parseval, the energy of every image times that of the kernels that meet it, over all pixels."""
    (vertical, horizontal), groups = problem.padding, problem.groups
    pixels = problem.n * problem.k * (problem.h + 2 * vertical) * (problem.w + 2 * horizontal)
    images = np.einsum("nchw,nchw->c", input, input, dtype=np.float64).reshape(groups, -1)
    kernels = np.einsum("kcrs,kcrs->kc", weight, weight, dtype=np.float64).reshape(groups, -1, images.shape[1]).sum(axis=1)
    return math.sqrt(float((images * kernels).sum()) / max(1, pixels))


PRODUCTS = {"output": _of_output, "input": _of_input, "weight": _of_weight, "bias": _of_bias}


def _indices(problem: Problem, of: str, positions: np.ndarray) -> tuple[np.ndarray, ...]:
    """The indices of a tensor's elements, with room for three axes to sum over."""
    return tuple(axis[:, None, None, None] for axis in np.unravel_index(positions, operations.shape(problem, of)))


def _pixels(problem: Problem, input: Any, n: Any, c: Any, p: Any, q: Any, r: Any, s: Any) -> np.ndarray:
    """The pixels of channel c that output p, q sees through tap r, s, in float64; zero in the padding."""
    y = p * problem.stride - problem.padding[0] + r * problem.dilation
    x = q * problem.stride - problem.padding[1] + s * problem.dilation
    inside = (y >= 0) & (y < problem.h) & (x >= 0) & (x < problem.w)
    pixels = input[n, c, np.clip(y, 0, problem.h - 1), np.clip(x, 0, problem.w - 1)].astype(np.float64)
    pixels *= inside
    return pixels


def _place(of: str, place: tuple[np.intp, ...]) -> str:
    return ", ".join(f"{axis}={int(index)}" for axis, index in zip(operations.AXES[of], place, strict=True))
