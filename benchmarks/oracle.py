"""Is an output right? A float64 reference, its error bounds, and what to say where it is wrong.

The reference gathers each output's window by index arithmetic on the unpadded input and sums the products in float64. It
shares no code with any implementation. Small problems are compared whole; for large ones the reference is a fixed random
sample of outputs with a pixel of every channel and every image, the corners and points along the border; and every output
is looked at for NaN and infinity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchmarks.problems import Problem

WHOLE = 2_000_000  # multiply-adds up to which every output has its reference: 50 ms once a problem, then read from disk
SAMPLE = 4_000_000  # multiply-adds spent on a larger problem's sample
MOST = 16_384  # outputs in a sample, beside those of every channel, every image and the border
BORDER = 256  # of the sample, how many outputs lie on the border
CHUNK = 1 << 20  # products gathered at a time, so that a reference needs 20 MB and not the whole patch matrix

UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}  # unit roundoff


class WrongAnswer(AssertionError):
    """An output differs from the reference by more than its algorithm's rounding can explain."""


@dataclass(frozen=True)
class Reference:
    """Outputs at flat `positions` in float64, and for each the sum of |weight| |input| that bounds its rounding."""

    positions: np.ndarray
    values: np.ndarray
    magnitudes: np.ndarray

    def negated(self) -> Reference:
        """The reference of the negated input."""
        return Reference(self.positions, -self.values, self.magnitudes)


@dataclass(frozen=True)
class Errors:
    """How far an output is from the reference: relative L2 norm, and the worst single error over its own bound."""

    relative_l2: float
    worst: float


def reference(problem: Problem, input: np.ndarray, weight: np.ndarray) -> Reference:
    """Compute the reference of a problem for input (N, C, H, W) and weight (K, C/g, R, S)."""
    positions = _positions(problem)
    values, magnitudes = np.empty(len(positions)), np.empty(len(positions))
    step = max(1, CHUNK // problem.taps)
    for start in range(0, len(positions), step):
        part = slice(start, start + step)
        products = _products(problem, input, weight, positions[part])
        values[part] = products.sum(axis=1)
        magnitudes[part] = np.abs(products, out=products).sum(axis=1)
    return Reference(positions, values, magnitudes)


def compare(problem: Problem, family: str, known: Reference, output: np.ndarray) -> Errors:
    """Compare a whole output (N, K, P, Q) with the reference; return the errors.

    Raises WrongAnswer, whose text says what is wrong and where.
    """
    if not isinstance(output, np.ndarray) or output.shape != problem.output_shape:
        raise WrongAnswer(f"the output has shape {getattr(output, 'shape', None)}, not {problem.output_shape}")
    if str(output.dtype) != problem.dtype:
        raise WrongAnswer(f"the output has dtype {output.dtype}, not {problem.dtype}")
    finite = np.isfinite(output)
    if not finite.all():
        place = np.unravel_index(int(np.argmin(finite)), output.shape)
        raise WrongAnswer(f"the output is {output[place]} at {_place(place)}")
    return compare_at(problem, family, known, output.reshape(-1)[known.positions])


def compare_at(problem: Problem, family: str, known: Reference, values: np.ndarray) -> Errors:
    """Compare the outputs at the reference's positions alone; return the errors or raise WrongAnswer."""
    if not len(known.positions):
        return Errors(0.0, 0.0)
    difference = np.abs(values - known.values)
    # Sums of random signs are about magnitude / sqrt(taps). Where a few outputs happen to cancel further, their own norm
    # says nothing about the rounding in them.
    expected = float(np.linalg.norm(known.magnitudes)) / math.sqrt(problem.taps)
    norm = max(float(np.linalg.norm(known.values)), expected)
    relative = float(np.linalg.norm(difference)) / norm if norm else float(np.linalg.norm(difference))
    allowed_l2, factor = bounds(problem, family)
    allowed = np.full_like(known.magnitudes, np.inf)
    if math.isfinite(factor):
        allowed = factor * UNIT[problem.dtype] * shared(family, known.magnitudes)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(difference > 0, difference / allowed, 0.0)
    worst = int(np.argmax(np.where(np.isnan(ratios), np.inf, ratios)))
    if not (relative <= allowed_l2 and ratios[worst] <= 1):
        place = np.unravel_index(int(known.positions[worst]), problem.output_shape)
        raise WrongAnswer(
            f"relative L2 error {relative:.1e}, allowed {allowed_l2:.1e}; "
            f"worst at {_place(place)}: {values[worst]:.6g}, not {known.values[worst]:.6g}"
        )
    return Errors(relative, float(ratios[worst]))


def bounds(problem: Problem, family: str) -> tuple[float, float]:
    """The largest relative L2 error an algorithm of this family may show, and its largest single error in units of
    roundoff times the sum of |weight| |input|.

    Direct sums: the rigorous bound of Higham (Accuracy and Stability of Numerical Algorithms, chapter 3) for each output,
    and for the norm ten times what a strictly sequential float32 sum was seen to give. Winograd: oneDNN's own bound for
    the norm (tests/benchdnn/conv/conv.cpp), twice the worst seen for single outputs. TF32 rounds inputs to 10 bits.
    """
    scale = UNIT[problem.dtype] / UNIT["float32"]
    if family == "winograd":
        return 2e-5 * scale, 512.0
    if family == "tf32" and problem.dtype == "float32":
        return 1e-3, 2.0**14
    if family == "fft":
        # Its error is bounded by the norm of the image, not by each output's own sum: the norm alone can judge.
        return 3e-6 * scale * max(1.0, math.sqrt(problem.taps / 5000)), math.inf
    return 3e-6 * scale * max(1.0, math.sqrt(problem.taps / 5000)), problem.taps + 2.0


def shared(family: str, magnitudes: np.ndarray) -> np.ndarray:
    """The sums by which each output's rounding is measured: its own or, with Winograd, whose outputs share the rounding of
    their tile, the largest of all. An output that sees nothing but padding has the rounding of the pixels beside it."""
    return np.full_like(magnitudes, magnitudes.max(initial=0.0)) if family == "winograd" else magnitudes


def _positions(problem: Problem) -> np.ndarray:
    """Which outputs have a reference, as sorted flat indices."""
    if problem.outputs * problem.taps <= WHOLE:
        return np.arange(problem.outputs)
    _, _, p, q = problem.output_shape
    images = problem.outputs // (p * q)
    generator = np.random.default_rng(0)
    count = min(MOST, max(512, SAMPLE // problem.taps))
    anywhere = generator.integers(0, problem.outputs, count)
    # Border rows and columns of random images, and the four corners of the first and the last.
    along = generator.random((4, BORDER // 4))
    rows = np.concatenate([along[0] * 0, along[1] * 0 + p - 1, along[2] * p, along[3] * p]).astype(np.int64)
    columns = np.concatenate([along[0] * q, along[1] * q, along[2] * 0, along[3] * 0 + q - 1]).astype(np.int64)
    border = (generator.integers(0, images, len(rows)) * p + rows) * q + columns
    corners = [(i * p + y) * q + x for i in (0, images - 1) for y in (0, p - 1) for x in (0, q - 1)]
    # A pixel of every output channel and of every image: chance alone leaves one channel in ten of a deep layer unseen.
    channels = generator.integers(0, problem.n, problem.k) * problem.k + np.arange(problem.k)
    batch = np.arange(problem.n) * problem.k + generator.integers(0, problem.k, problem.n)
    planes = np.concatenate([channels, batch])
    everywhere = planes * (p * q) + generator.integers(0, p * q, len(planes))
    return np.unique(np.concatenate([anywhere, border, corners, everywhere]))


def _products(problem: Problem, input: np.ndarray, weight: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Every product that enters the outputs at `positions`: (positions, taps) in float64."""
    n, k, p, q = (axis[:, None, None, None] for axis in np.unravel_index(positions, problem.output_shape))
    channels = problem.c // problem.groups
    c = (k // (problem.k // problem.groups)) * channels + np.arange(channels)[:, None, None]
    y = p * problem.stride - problem.padding[0] + np.arange(problem.r)[:, None] * problem.dilation
    x = q * problem.stride - problem.padding[1] + np.arange(problem.s) * problem.dilation
    inside = (y >= 0) & (y < problem.h) & (x >= 0) & (x < problem.w)
    pixels = input[n, c, np.clip(y, 0, problem.h - 1), np.clip(x, 0, problem.w - 1)].astype(np.float64)
    pixels *= inside
    pixels *= weight[k[:, 0, 0, 0]]
    return pixels.reshape(len(positions), problem.taps)


def _place(place: tuple[np.intp, ...]) -> str:
    return "n={}, k={}, p={}, q={}".format(*map(int, place))
