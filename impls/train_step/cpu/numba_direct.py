"""torch's linear layers around the Numba convolution of this package, its gradients and its Adam.

The convolutions' FLOPs are those of conv2d's and conv2d_backward's cpu.numba_direct; extra memory: every layer's output and
its gradient.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step.layers import convolution
from impls.train_step.training import step_by

CONVOLVE = convolution("cpu.numba_direct", "cpu.numba_direct")
UPDATE = contract.load("cpu.numba", "adam_step")


@implementation(device="cpu", family="direct", summary="torch with this package's convolution, gradients and Adam in Numba")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(CONVOLVE, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
