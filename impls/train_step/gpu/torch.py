"""torch's own layers and its Adam as it comes, on a CUDA device, float32 as float32. The baseline there.

Forward, gradients by torch's autograd at twice the FLOPs, and 14 passes over the parameters, each one kernel for all of them;
extra memory: every layer's output and its gradient. Parameters, moments, images and labels are on the device.
https://docs.pytorch.org/docs/stable/generated/torch.optim.Adam.html
"""

from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.train_step.training import step_on_device

require_torch("gpu.torch")


@implementation(device="cuda", family="cudnn", summary="torch: built-in layers and Adam, TF32 off", arrays="torch")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_on_device(functional.conv2d, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
