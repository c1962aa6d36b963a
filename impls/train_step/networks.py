"""The three networks on MNIST's images, as functions of their parameters; the convolution is the caller's choice.

The perceptron 784-1000-1000-10 of Chainer's first example. "text" is the network of a post on writing one's own convolution
in PyTorch: four 3x3 layers of 3, 3, 6 and 6 channels, a maximum over 2x2 pixels behind each two of them, 96-30-10 linear, a
fifth of the inputs to each linear layer dropped out. "convolutional" has 50 if that has 30, and drops out before the
last layer alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from impls.train_step.arguments import SHAPES

DROPPED = 0.2
Convolution = Callable[[Any, Any, Any], Any]  # of input, weight and bias


def loss(network: str, parameters: list[Any], images: Any, labels: Any, step: int, convolve: Convolution) -> Any:
    """The mean negative log-likelihood of the labels while training, on the device of the parameters and images."""
    kept = _kept(network, len(images), step, images.device)
    return functional.nll_loss(NETWORKS[network](parameters, images, convolve, kept), labels)


def predict(network: str, parameters: list[Any], images: Any) -> Any:
    """The log-likelihoods (N, 10) of the classes once trained, by torch's own convolution: nothing drops out."""
    return NETWORKS[network](parameters, images, functional.conv2d, (None, None))


def _perceptron(parameters: list[Any], images: Any, convolve: Convolution, kept: Any) -> Any:
    first, first_bias, second, second_bias, last, last_bias = parameters
    values = functional.relu(functional.linear(images.flatten(1), first, first_bias))
    values = functional.relu(functional.linear(values, second, second_bias))
    return functional.log_softmax(functional.linear(values, last, last_bias), dim=1)


def _convolutional(parameters: list[Any], images: Any, convolve: Convolution, kept: Any) -> Any:
    *layers, wide, wide_bias, last, last_bias = parameters
    for first in (0, 4):
        for place in (first, first + 2):
            images = functional.relu(convolve(images, layers[place], layers[place + 1]))
        images = functional.max_pool2d(images, 2)
    values = _dropped_out(images.flatten(1), kept[0])
    values = _dropped_out(functional.relu(functional.linear(values, wide, wide_bias)), kept[1])
    return functional.log_softmax(functional.linear(values, last, last_bias), dim=1)


def _dropped_out(values: Any, kept: Any) -> Any:
    """The values after dropout, scaled so that their mean stays."""
    return values if kept is None else values * (kept / (1 - DROPPED)).to(values.dtype)


def _kept(network: str, count: int, step: int, device: Any) -> tuple[Any, Any]:
    """Which inputs of the two linear layers stay, None for all: the same in every implementation, decided by the step."""
    if network == "text":
        hidden, inputs = SHAPES[network][-4]
        kept = hashed(count * (inputs + hidden), step, device) >= DROPPED * 2**16
        return kept[: count * inputs].view(count, inputs), kept[count * inputs :].view(count, hidden)
    if network == "convolutional":
        random = torch.rand(count, SHAPES[network][-2][1], generator=torch.Generator().manual_seed(step))
        return None, (random >= DROPPED).to(device)
    return None, None


def hashed(count: int, step: int, device: Any) -> Any:
    """Pseudo-random numbers from 0 to 2^16 - 1: a hash of their places, the same on every device.

    torch's generators draw other numbers on a device than on the CPU, and the answers could not be checked.
    https://github.com/skeeto/hash-prospector
    """
    values = torch.arange(count, dtype=torch.int32, device=device) + step * count % 2**30
    for shift, factor in ((15, 0x2C1B3C6D), (12, 0x297A2D39)):
        values = (values ^ (values >> shift)) * factor
    return (values ^ (values >> 15)) & 0xFFFF


NETWORKS = {"perceptron": _perceptron, "convolutional": _convolutional, "text": _convolutional}
