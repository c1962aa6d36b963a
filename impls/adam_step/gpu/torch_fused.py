"""torch's fused Adam on a CUDA device: one kernel, one pass over all four arrays.

13 FLOPs an element, 4 reads and 3 writes of it; no extra memory.
https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""

from impls.adam_step.tensors import by_torch
from impls.contract import implementation
from impls.conv2d.devices import require_torch

require_torch("gpu.torch_fused")


@implementation(device="cuda", family="library", summary="torch.optim's Adam, fused", arrays="torch")
def adam_step(parameter, gradient, exp_avg, exp_avg_sq, step, lr=1e-3, beta1=0.9, beta2=0.999, eps=1e-8):
    """Update parameter and both moments in place by one step of Adam."""
    tensors = parameter, gradient, exp_avg, exp_avg_sq
    by_torch(tensors, step, lr, beta1, beta2, eps, foreach=False, fused=True)
