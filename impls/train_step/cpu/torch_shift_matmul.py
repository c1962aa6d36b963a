"""torch's linear layers around a convolution that is itself written in torch, one product a tap.

The convolutions' FLOPs are 2 N K H W C R S, and twice that for autograd's gradients; extra memory: a product for each tap in
turn, forward and back, of the size of a layer's images with K channels. The layer of a post on writing a convolution for
PyTorch, which trains half as fast as with the built-in one: its baseline here.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step.layers import shift_matmul
from impls.train_step.training import step_by

UPDATE = contract.load("cpu.torch_single", "adam_step")


@implementation(device="cpu", family="shift", summary="torch with a convolution of shifted matrix products, in torch")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(shift_matmul, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
