"""One CuPy element-wise kernel: each element's four numbers are read once and three written.

13 FLOPs an element, 4 reads and 3 writes of it; no extra memory. 7 numbers an element is the least traffic there is.
https://docs.cupy.dev/en/stable/user_guide/kernel.html
"""

import cupy

from impls.adam_step.corrections import corrected
from impls.contract import implementation
from impls.conv2d.devices import require_cupy

require_cupy("gpu.cupy_elementwise")

UPDATE = cupy.ElementwiseKernel(
    "T gradient, T rate, T beta1, T beta2, T rest1, T rest2, T eps",
    "T parameter, T exp_avg, T exp_avg_sq",
    """
    exp_avg = beta1 * exp_avg + rest1 * gradient;
    exp_avg_sq = beta2 * exp_avg_sq + rest2 * gradient * gradient;
    parameter -= rate * exp_avg / (sqrt(exp_avg_sq) + eps);
    """,
    "adam_step",
)


@implementation(device="cuda", family="fused", summary="CuPy: one element-wise kernel over all four arrays", arrays="cupy")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    rate, eps = corrected(step, lr, beta1, beta2, eps)
    # As scalars of the arrays' own precision, so that the kernel is one of these alone.
    numbers = map(parameter.dtype.type, (rate, beta1, beta2, 1 - beta1, 1 - beta2, eps))
    UPDATE(gradient, *numbers, parameter, exp_avg, exp_avg_sq)
