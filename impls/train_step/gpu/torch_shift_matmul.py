"""torch's linear layers around a convolution that is itself written in torch, one product a tap, on a CUDA device.

The convolutions' FLOPs are 2 N K H W C R S, and twice that for autograd's gradients, in float32; extra memory: a product for
each tap in turn, forward and back, of the size of a layer's images with K channels. The layer of a post on writing a
convolution for PyTorch, which trains half as fast as with the built-in one: its baseline there and here, gpu.torch.
"""

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.train_step.layers import shift_matmul
from impls.train_step.training import step_on_device

require_torch("gpu.torch_shift_matmul")


@implementation(
    device="cuda", family="shift", summary="torch with a convolution of shifted matrix products, in torch", arrays="torch"
)
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_on_device(shift_matmul, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
