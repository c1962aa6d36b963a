"""The two networks on MNIST's images, as functions of their parameters; the convolution is the caller's choice.

The perceptron 784-1000-1000-10 of Chainer's first example, and a convolutional network of a post on writing one's own
convolution in PyTorch: four 3x3 layers of 3, 3, 6 and 6 channels, a maximum over 2x2 pixels behind each two of them, two
linear layers, a fifth of the inputs to the last dropped out.
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
    """The mean negative log-likelihood of the labels while training."""
    return functional.nll_loss(NETWORKS[network](parameters, images, convolve, _kept(network, len(images), step)), labels)


def predict(network: str, parameters: list[Any], images: Any) -> Any:
    """The log-likelihoods (N, 10) of the classes once trained, by torch's own convolution: nothing drops out."""
    return NETWORKS[network](parameters, images, functional.conv2d, None)


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
    values = functional.relu(functional.linear(images.flatten(1), wide, wide_bias))
    if kept is not None:
        values = values * kept.to(values.dtype)
    return functional.log_softmax(functional.linear(values, last, last_bias), dim=1)


def _kept(network: str, count: int, step: int) -> Any:
    """What is left of the last layer's inputs, scaled so that their mean stays: the same in every implementation."""
    if network != "convolutional":
        return None
    random = torch.rand(count, SHAPES[network][-2][1], generator=torch.Generator().manual_seed(step))
    return (random >= DROPPED) / (1 - DROPPED)


NETWORKS = {"perceptron": _perceptron, "convolutional": _convolutional}
