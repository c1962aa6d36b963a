"""conv2d and conv2d_backward of this package as a function that torch differentiates, and as a layer that it trains.

On the CPU, in float32 and float64. https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.function import once_differentiable

from impls import contract
from impls.conv2d.tensors import tensor

FORWARD, BACKWARD = "cpu.auto", "cpu.cython_direct"


def convolution(forward: str = FORWARD, backward: str = BACKWARD) -> Callable[..., torch.Tensor]:
    """torch.nn.functional.conv2d, computed by one implementation of conv2d and differentiated by one of conv2d_backward.

    Raises LookupError and Unavailable as impls.load does, and ValueError for one that does not compute on the CPU.
    """
    convolve, gradients = contract.load(forward), contract.load(backward, "conv2d_backward")
    for function in (convolve, gradients):
        if function.arrays != "numpy":
            raise ValueError(f"{function.name} takes {function.arrays}'s arrays; a layer on the CPU takes NumPy's")

    def conv2d(
        input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        return _Convolve.apply(input, weight, bias, (stride, padding, dilation, groups), convolve, gradients)

    return conv2d


class _Convolve(torch.autograd.Function):
    """Both directions, through arrays that share the tensors' memory."""

    @staticmethod
    def forward(ctx: Any, input: Any, weight: Any, bias: Any, settings: Any, convolve: Any, gradients: Any) -> Any:
        ctx.save_for_backward(input, weight)
        ctx.settings, ctx.gradients = settings, gradients
        return tensor(
            convolve(*(each if each is None else each.detach().numpy() for each in (input, weight, bias)), *settings)
        )

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        arrays = (each.detach().numpy() for each in (*grad_outputs, *ctx.saved_tensors))
        found = ctx.gradients(*arrays, *ctx.settings)
        grads = (tensor(each) if needed else None for each, needed in zip(found, ctx.needs_input_grad, strict=False))
        return *grads, None, None, None


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, its parameters drawn as torch draws them, computed by implementations of this package.

    Takes what torch's takes, and `forward_by` and `backward_by`: names of conv2d and conv2d_backward. Raises what
    convolution() does, and ValueError for borders that are not zeros.
    """

    def __init__(self, *args: Any, forward_by: str = FORWARD, backward_by: str = BACKWARD, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.padding_mode != "zeros":
            raise ValueError(f"padding_mode must be zeros, not {self.padding_mode}")
        self.convolve = convolution(forward_by, backward_by)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(N, in_channels, H, W) to (N, out_channels, P, Q)."""
        return self.convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)
