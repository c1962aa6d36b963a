"""Convolutions of this package as functions that torch differentiates, and as layers that it trains.

A pair of conv2d and conv2d_backward computes on the CPU, in float32 and float64; the one that is made of torch's operations
wherever the tensors are. https://docs.pytorch.org/docs/stable/notes/extending.html
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.amp import custom_bwd, custom_fwd

from impls import checks, contract
from impls.conv2d import shifted_products
from impls.conv2d.arguments import geometry
from impls.conv2d.tensors import tensor

FORWARD, BACKWARD = "cpu.auto", "cpu.cython_direct"


def convolution(forward: str = FORWARD, backward: str = BACKWARD) -> Callable[..., torch.Tensor]:
    """torch.nn.functional.conv2d, computed by one implementation of conv2d and differentiated by one of conv2d_backward.

    Under autocast it computes in float32. Raises LookupError and Unavailable as impls.load does, and ValueError for one that
    does not compute on the CPU.
    """
    convolve, gradients = contract.load(forward), contract.load(backward, "conv2d_backward")
    for function in (convolve, gradients):
        if function.arrays != "numpy":
            raise ValueError(f"{function.name} takes {function.arrays}'s arrays; a layer on the CPU takes NumPy's")
    return _Convolution(convolve, gradients)


class _Convolution:
    """torch.nn.functional.conv2d by a pair of implementations: an object, since a layer that holds one has to be pickled."""

    def __init__(self, convolve: contract.Implementation, gradients: contract.Implementation) -> None:
        self._pair = convolve, gradients

    def __call__(
        self, input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
    ) -> Any:
        return _Convolve.apply(input, weight, bias, (stride, padding, dilation, groups), *self._pair)


def shift_matmul(
    input: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
) -> torch.Tensor:
    """torch.nn.functional.conv2d by a product and a slice for each tap, on any device, differentiated by torch.

    Raises TypeError and ValueError as conv2d does for shapes and settings that do not fit.
    """
    settings = checks.plain(stride=stride, padding=padding, dilation=dilation, groups=groups)
    found = geometry(tuple(input.shape), tuple(weight.shape), *settings)
    if bias is not None:
        checks.require_bias(bias.shape, len(weight))
    return shifted_products.convolve(input, weight, bias, found.stride, found.padding, found.dilation, settings[3])


class _Convolve(torch.autograd.Function):
    """Both directions, through arrays that share the tensors' memory."""

    @staticmethod
    @custom_fwd(device_type="cpu", cast_inputs=torch.float32)
    def forward(ctx: Any, input: Any, weight: Any, bias: Any, settings: Any, convolve: Any, gradients: Any) -> Any:
        checks.dtype_name(input.dtype)  # NumPy has no bfloat16
        ctx.save_for_backward(input, weight)
        ctx.settings, ctx.gradients = settings, gradients
        return tensor(
            convolve(*(each if each is None else each.detach().numpy() for each in (input, weight, bias)), *settings)
        )

    @staticmethod
    @custom_bwd(device_type="cpu")
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        if torch.is_grad_enabled():  # torch's once_differentiable would let second derivatives pass as zeros
            raise NotImplementedError("convolutions of impls have only first derivatives: call without create_graph=True")
        arrays = (each.detach().numpy() for each in (*grad_outputs, *ctx.saved_tensors))
        found = ctx.gradients(*arrays, *ctx.settings)
        grads = (tensor(each) if needed else None for each, needed in zip(found, ctx.needs_input_grad, strict=False))
        return *grads, None, None, None


class Conv2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, its parameters drawn as torch draws them, computed by implementations of this package.

    Takes what torch's takes, and `forward_by` and `backward_by`: names of conv2d and conv2d_backward. It has first
    derivatives alone: second ones raise NotImplementedError, torch.func's transforms torch's RuntimeError. Raises what
    convolution() does, and ValueError for borders that are not zeros.
    """

    def __init__(self, *args: Any, forward_by: str = FORWARD, backward_by: str = BACKWARD, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _require_zeros(self)
        self.convolve = convolution(forward_by, backward_by)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(N, in_channels, H, W) to (N, out_channels, P, Q)."""
        return self.convolve(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ShiftMatmul2d(torch.nn.Conv2d):
    """torch.nn.Conv2d, its parameters drawn as torch draws them, computed by shift_matmul() on the device of its input.

    Takes what torch's takes. Raises what shift_matmul() does, and ValueError for borders that are not zeros.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _require_zeros(self)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """(N, in_channels, H, W) to (N, out_channels, P, Q)."""
        return shift_matmul(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


def _require_zeros(layer: torch.nn.Conv2d) -> None:
    if layer.padding_mode != "zeros":
        raise ValueError(f"padding_mode must be zeros, not {layer.padding_mode}")
