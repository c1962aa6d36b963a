"""One step of training in torch, by any convolution and any Adam: what the implementations share."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from impls.adam_step.tensors import lists_by_torch
from impls.train_step import networks
from impls.train_step.networks import Convolution

BETA1, BETA2, EPS = 0.9, 0.999, 1e-8  # adam_step's if they are not given


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


def step_on_device(
    convolve: Convolution,
    network: str,
    parameters: list[torch.Tensor],
    exp_avg: list[torch.Tensor],
    exp_avg_sq: list[torch.Tensor],
    images: torch.Tensor,
    labels: torch.Tensor,
    step: int,
    lr: float,
) -> float:
    """The same step on a CUDA device, by torch's default Adam there: all parameters in each of its kernels.

    float32 as float32. The loss is waited for.
    """
    leaves = [tensor.detach().requires_grad_() for tensor in parameters]
    with _without_tf32():
        found = networks.loss(network, leaves, images, labels, step, convolve)
        gradients = torch.autograd.grad(found, leaves)
    lists = parameters, list(gradients), exp_avg, exp_avg_sq
    lists_by_torch(lists, step, lr, BETA1, BETA2, EPS, foreach=True, fused=False)
    return float(found.detach())


@contextlib.contextmanager
def _without_tf32() -> Iterator[None]:
    """Products and convolutions of float32 in float32, forward and backward, and cuDNN chooses by its heuristics."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(
            enabled=True, benchmark=False, deterministic=False, allow_tf32=False, fp32_precision="ieee"
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)
