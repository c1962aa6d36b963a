"""torch's linear layers around a convolution that is itself written in torch, one product a tap.

The convolutions' FLOPs are 2 N K P Q C R S, and twice that for autograd's gradients; extra memory: for every tap of every
layer a copy of its slice of the images and a product as large as the output, which autograd keeps. The layer of a post on
writing a convolution for PyTorch, which trains half as fast as with the built-in one: its baseline here.
"""

import numpy as np

from impls import contract
from impls.contract import implementation
from impls.train_step.training import step_by

UPDATE = contract.load("cpu.torch_single", "adam_step")


def _convolve(input, weight, bias):
    """Of input (N, C, H, W), without padding: a slice for each tap, its channels mixed by a product."""
    k, channels, taps_y, taps_x = weight.shape
    n, _, height, width = input.shape
    p, q = height - taps_y + 1, width - taps_x + 1
    output = bias[:, None]
    for r, s in np.ndindex(taps_y, taps_x):
        output = output + weight[:, :, r, s] @ input[:, :, r : r + p, s : s + q].reshape(n, channels, p * q)
    return output.reshape(n, k, p, q)


@implementation(device="cpu", family="shift", summary="torch around a convolution of slices and products in torch")
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return step_by(_convolve, UPDATE, network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
