"""torch's linear layers around a convolution by shifted products in NumPy, as one writes it oneself.

The convolutions' FLOPs are those of conv2d's cpu.shift_matmul and conv2d_backward's cpu.shift; extra memory: every layer's
output and its gradient. From a post on writing a convolution for PyTorch, which trains about half as fast as with the
built-in layer.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step.layers import convolution
from impls.train_step.training import step_by

CONVOLVE = convolution("cpu.shift_matmul", "cpu.shift")
UPDATE = contract.load("cpu.torch_single", "adam_step")


@implementation(device="cpu", family="direct", summary="torch with a custom convolution in NumPy")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(CONVOLVE, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
