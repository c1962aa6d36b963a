"""The four formulas in Cython with types, a loop for each: what types give without fusion, one thread.

13 FLOPs an element; 7 reads and 3 writes of it in three passes; no extra memory. The ladder's rung between cpu.cython_untyped
and cpu.cython_fused.
"""

import impls.adam_step.cpu._cython_adam as _cython_adam  # type: ignore[import-not-found]
from impls.adam_step.corrections import corrected
from impls.contract import implementation


@implementation(device="cpu", family="passes", summary="Cython: a typed loop per formula, one thread")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    rate, eps = corrected(step, lr, beta1, beta2, eps)
    arrays = (array.reshape(-1) for array in (parameter, gradient, exp_avg, exp_avg_sq))
    _cython_adam.typed(*arrays, rate, beta1, beta2, eps)
