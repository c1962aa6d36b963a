"""Adam's bias corrections, taken out of the loops over elements."""

from __future__ import annotations

import math


def corrected(step: int, lr: float, beta1: float, beta2: float, eps: float) -> tuple[float, float]:
    """The step size and epsilon with which lr m / (sqrt(v) + eps) is Adam's change of a parameter, from the raw moments m, v.

    lr (m / c1) / (sqrt(v / c2) + eps) is lr sqrt(c2) / c1 m / (sqrt(v) + eps sqrt(c2)), where c = 1 - beta^step. Kingma and
    Ba, arXiv 1412.6980, end of section 2.
    """
    root = math.sqrt(1 - beta2**step)
    return lr * root / (1 - beta1**step), eps * root
