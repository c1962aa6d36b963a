"""Simulated noise of a known size."""

import math

import numpy as np

from convbench.doctor.noise import Noise


def noisy(spread, kind="compute", within=0.01, rounds=20):
    """Rounds whose ratios have this standard deviation, one up and one down; the processes have half of it."""
    signs = np.array([(-1) ** i for i in range(rounds)])
    ratios = spread * signs * math.sqrt((rounds - 1) / rounds)
    return Noise(kind, tuple(1e-4 * np.exp(spread / 2 * np.repeat(signs, 2))), tuple(ratios), within)
