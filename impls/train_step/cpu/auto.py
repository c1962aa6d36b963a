"""torch's linear layers around whichever convolution is fastest for each layer, Cython gradients and fused Adam.

The convolutions' FLOPs are those of whatever cpu.auto picks, and of conv2d_backward's cpu.cython_direct; extra memory:
every layer's output and its gradient.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step.layers import convolution
from impls.train_step.training import step_by

CONVOLVE = convolution("cpu.auto", "cpu.cython_direct")
UPDATE = contract.load("cpu.cython_fused", "adam_step")


@implementation(device="cpu", family="auto", summary="torch with the fastest convolution, gradients and Adam in Cython")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(CONVOLVE, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
