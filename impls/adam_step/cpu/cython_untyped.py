"""cpu.numpy compiled as it is: its file, unchanged and without types, goes through Cython.

The operations, allocations and extra memory of cpu.numpy. From a post on speeding up Chainer with Cython, whose script
became slower: the time is NumPy's, and compiling what calls it changes nothing.
"""

import impls.adam_step.cpu._cython_adam_untyped as _cython_adam_untyped  # type: ignore[import-not-found]
from impls.contract import implementation


@implementation(device="cpu", family="passes", summary="Cython: the NumPy code of cpu.numpy, compiled unchanged")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    compiled = _cython_adam_untyped.adam_step.unchecked
    compiled(parameter, gradient, exp_avg, exp_avg_sq, step, lr, beta1, beta2, eps)
