"""Random problems of common kinds: for choosing an implementation, and for judging the choice."""

from __future__ import annotations

import random
from typing import Any

from benchmarks.workloads.problems import Problem

MIN_FLOPS, MAX_FLOPS = 2e5, 1e9  # below, Python's own time decides; above, nine candidates take too long


def generate(count: int, seed: int) -> list[Problem]:
    """Generate distinct problems; the same for the same seed."""
    generator = random.Random(seed)
    found: dict[str, Problem] = {}
    while len(found) < count:
        try:
            problem = generator.choice(KINDS)(generator)
        except ValueError:  # a kernel larger than its image
            continue
        if MIN_FLOPS <= problem.flops <= MAX_FLOPS:
            found[problem.label] = problem
    return list(found.values())


def _between(generator: random.Random, low: int, high: int) -> int:
    """An integer, every factor of two as likely as the others."""
    return round(low * (high / low) ** generator.random())


def _channels(generator: random.Random, low: int, high: int) -> int:
    """The same; three times in four a multiple of eight, as most networks have them."""
    count = _between(generator, low, high)
    return -(-count // 8) * 8 if generator.random() < 0.75 else count


def _problem(generator: random.Random, n: int, c: int, side: tuple[int, int], k: int, taps: int, **more: Any) -> Problem:
    """One with a height near its width, and a padding that keeps the size or, one time in four, none."""
    h = _between(generator, *side)
    w = max(1, round(h * generator.choice((1, 1, 4 / 3, 16 / 9))))
    padding = generator.choice((0, 1, 1, 1)) * (more.get("dilation", 1) * (taps - 1) // 2)
    return Problem(n, c, h, w, k, taps, taps, padding=(padding, padding), **more)


def _filter(generator: random.Random) -> Problem:
    """Images of one channel through one filter."""
    n, taps = generator.choice((1, 1, 1, 4, 16)), generator.choice((3, 3, 5, 7, 9, 11, 15, 21))
    return _problem(generator, n, 1, (64, 2048), 1, taps)


def _first_layer(generator: random.Random) -> Problem:
    """A few channels to a few or many."""
    n, c, k = generator.choice((1, 1, 8, 64)), generator.randint(1, 6), _between(generator, 1, 64)
    return _problem(generator, n, c, (24, 512), k, generator.choice((3, 3, 5, 7, 11)), stride=generator.choice((1, 1, 2, 4)))


def _layer(generator: random.Random) -> Problem:
    """Many channels to many, 3x3."""
    n, c, k = generator.choice((1, 1, 2, 8, 32)), _channels(generator, 8, 768), _channels(generator, 8, 768)
    more = {"stride": generator.choice((1, 1, 1, 2)), "dilation": generator.choice((1, 1, 1, 1, 2))}
    return _problem(generator, n, c, (7, 128), k, 3, **more)


def _pointwise(generator: random.Random) -> Problem:
    """Many channels to many, 1x1."""
    n, c, k = generator.choice((1, 1, 2, 8, 32)), _channels(generator, 8, 2048), _channels(generator, 8, 2048)
    return _problem(generator, n, c, (7, 128), k, 1, stride=generator.choice((1, 1, 1, 2)))


def _large_kernel(generator: random.Random) -> Problem:
    """Many channels to many, 5x5 and 7x7."""
    n, c, k = generator.choice((1, 1, 8)), _channels(generator, 8, 256), _channels(generator, 8, 256)
    return _problem(generator, n, c, (7, 64), k, generator.choice((5, 5, 7)), stride=generator.choice((1, 1, 2)))


def _depthwise(generator: random.Random) -> Problem:
    """Each channel by itself."""
    n, c = generator.choice((1, 1, 8, 32)), _channels(generator, 8, 1024)
    taps, stride = generator.choice((3, 3, 5, 7)), generator.choice((1, 1, 2))
    return _problem(generator, n, c, (7, 128), c, taps, stride=stride, groups=c)


def _grouped(generator: random.Random) -> Problem:
    """Groups of 4 to 32 channels, as ResNeXt has them."""
    groups, width = generator.choice((2, 4, 8, 32)), generator.choice((4, 8, 16, 32))
    n, stride = generator.choice((1, 1, 8)), generator.choice((1, 1, 2))
    return _problem(generator, n, groups * width, (7, 64), groups * width, 3, stride=stride, groups=groups)


KINDS = (_filter, _first_layer, _layer, _layer, _pointwise, _large_kernel, _depthwise, _grouped)
