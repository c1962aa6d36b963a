"""The definition's four lines in NumPy, as one writes them down: each operation makes an array.

14 operations over whole arrays, each with an array of its own for the result, most of them newly allocated; extra memory:
three of the parameter's size at a time. The ladder's first rung, and the hot spot that a post on speeding up Chainer with
Cython found.
"""

import numpy as np

from impls.contract import implementation


@implementation(device="cpu", family="passes", summary="NumPy: the four formulas of Adam as written")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    exp_avg[...] = beta1 * exp_avg + (1 - beta1) * gradient
    exp_avg_sq[...] = beta2 * exp_avg_sq + (1 - beta2) * gradient * gradient
    # Steps and roots are corrected in place of the moments, which may be too large for float32 once corrected.
    root = np.sqrt(exp_avg_sq) / (1 - beta2**step) ** 0.5
    parameter -= lr / (1 - beta1**step) * exp_avg / (root + eps)
