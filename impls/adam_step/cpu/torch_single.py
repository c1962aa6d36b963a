"""torch's Adam as it comes on the CPU: an operation after the other, a tensor at a time.

A pass over memory for each of about nine operations; extra memory: two arrays of the parameter's size.
https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""

from impls.adam_step.tensors import by_torch
from impls.contract import implementation
from impls.conv2d.tensors import tensor


@implementation(device="cpu", family="library", summary="torch.optim's Adam, one tensor at a time")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    tensors = map(tensor, (parameter, gradient, exp_avg, exp_avg_sq))
    by_torch(tensors, step, lr, beta1, beta2, eps, foreach=False, fused=False)
