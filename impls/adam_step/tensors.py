"""One step of torch's own Adam, for the implementations that call it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.optim.adam import adam


def by_torch(
    tensors: Iterable[torch.Tensor], step: int, lr: float, beta1: float, beta2: float, eps: float, **kind: Any
) -> None:
    """Update parameter and both moments in place.

    tensors: parameter, gradient and both moments. kind: foreach and fused, as torch.optim.Adam has them.
    """
    lists_by_torch(([tensor] for tensor in tensors), step, lr, beta1, beta2, eps, **kind)


def lists_by_torch(
    lists: Iterable[list[torch.Tensor]], step: int, lr: float, beta1: float, beta2: float, eps: float, **kind: Any
) -> None:
    """The same for several parameters at a time, as torch.optim.Adam updates those of a network.

    lists: parameters, their gradients and both moments.
    """
    parameters, gradients, exp_avg, exp_avg_sq = lists
    # torch counts up itself. A fused step on a device wants the count there, and reads it without waiting for it.
    place = parameters[0].device if kind["fused"] else "cpu"
    done = [torch.full((), step - 1.0, device=place) for _ in parameters]
    with torch.no_grad():
        adam(
            *(parameters, gradients, exp_avg, exp_avg_sq, [], done),
            **kind,
            amsgrad=False,
            beta1=beta1,
            beta2=beta2,
            lr=lr,
            weight_decay=0.0,
            eps=eps,
            maximize=False,
        )
