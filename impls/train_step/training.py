"""One step of training in torch, by any convolution and any Adam: what the implementations share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from impls.train_step import networks
from impls.train_step.networks import Convolution


def step_by(
    convolve: Convolution,
    update: Callable[..., Any],
    network: str,
    parameters: list[np.ndarray],
    exp_avg: list[np.ndarray],
    exp_avg_sq: list[np.ndarray],
    images: np.ndarray,
    labels: np.ndarray,
    step: int,
    lr: float,
) -> float:
    """Take the loss's gradients and have every parameter and its moments updated in place; return the loss."""
    leaves = [torch.from_numpy(array).requires_grad_() for array in parameters]
    found = networks.loss(network, leaves, torch.from_numpy(images), torch.from_numpy(labels), step, convolve)
    gradients = torch.autograd.grad(found, leaves)
    for parameter, gradient, *moments in zip(parameters, gradients, exp_avg, exp_avg_sq, strict=True):
        update(parameter, gradient.contiguous().numpy(), *moments, step, lr)
    return float(found.detach())
