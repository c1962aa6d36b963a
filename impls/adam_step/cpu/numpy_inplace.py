"""NumPy with every result written in place: nothing is allocated but two work arrays.

12 operations over whole arrays, 17 reads and 12 writes of them; extra memory: one array twice the parameter's size. The bias
corrections are taken into the step size and epsilon, as at the end of section 2 of Kingma and Ba, arXiv 1412.6980.
"""

import numpy as np

from impls.adam_step.corrections import corrected
from impls.contract import implementation


@implementation(device="cpu", family="passes", summary="NumPy: in place, with two temporary arrays")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    rate, eps = corrected(step, lr, beta1, beta2, eps)
    work, below = np.empty_like(parameter), np.empty_like(parameter)
    exp_avg *= beta1
    np.multiply(gradient, 1 - beta1, out=work)
    exp_avg += work
    exp_avg_sq *= beta2
    np.multiply(gradient, 1 - beta2, out=work)
    work *= gradient  # in this order: a square alone may be too large for float32
    exp_avg_sq += work
    np.sqrt(exp_avg_sq, out=below)
    below += eps
    np.multiply(exp_avg, rate, out=work)
    work /= below
    parameter -= work
