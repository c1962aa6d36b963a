"""torch's own layers and its Adam as it comes, an operation at a time. The baseline.

Forward, gradients by torch's autograd at twice the FLOPs, and 14 passes over each parameter; extra memory: every layer's
output and its gradient.
https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""

from torch.nn import functional

from impls import contract
from impls.contract import implementation
from impls.train_step.training import step_by

UPDATE = contract.load("cpu.torch_single", "adam_step")


@implementation(device="cpu", family="library", summary="torch: built-in layers, default Adam")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(functional.conv2d, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
