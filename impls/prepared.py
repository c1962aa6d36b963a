"""Packs weights once: the attribute `.prepare` of implementations and its result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from impls import checks


class Packing:
    """Packs a weight, its arguments checked as those of a call are: weight (K, C/groups, R, S), bias (K,)."""

    def __init__(
        self,
        origin: tuple[Callable[..., Any], tuple[Any, ...]],
        pack: Callable[..., Callable[[Any], Any]],
        check: Callable[..., tuple[Any, ...]],
    ) -> None:
        """origin: what makes the implementation again. pack: called with arguments in one form. check: makes that form."""
        self._origin, self._pack, self._check = origin, pack, check

    def __call__(
        self, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
    ) -> Prepared:
        """Pack a weight, and keep copies of it and of the bias: later changes of the originals have no effect here."""
        settings = stride, padding, dilation, groups
        self._check(_no_images(weight, dilation, groups), weight, bias, *settings)
        arguments = _copy(weight), _copy(bias), *settings
        form = self._check(_no_images(weight, dilation, groups), *arguments)
        return Prepared(self, arguments, self._pack(*form[1:]), self._check)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _packing, self._origin


class Prepared:
    """A weight that is packed, to be called with inputs (N, C, H, W). Copied and pickled as it was made, and packed again."""

    def __init__(
        self, packing: Packing, arguments: tuple[Any, ...], convolve: Callable[[Any], Any], check: Callable[..., Any]
    ) -> None:
        self._packing, self._arguments, self._convolve, self._check = packing, arguments, convolve, check

    def __call__(self, input: Any, *, out: Any = None) -> Any:
        """Convolve an input (N, C, H, W), checked as that of a call is; returns the output (N, K, P, Q), `out` if given."""
        return checks.into(out, self._convolve, self._check(input, *self._arguments, out=out)[0])

    def __reduce__(self) -> tuple[Packing, tuple[Any, ...]]:
        return self._packing, self._arguments


def _packing(make: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    return make(*arguments).prepare


def _copy(array: Any) -> Any:
    if array is None:
        return None
    return array.clone() if hasattr(array, "clone") else array.copy()


def _no_images(weight: Any, dilation: Any, groups: Any) -> Any:
    """A batch of no images as large as the kernel, in place of the inputs to come while the other arguments are checked."""
    try:
        (_, channels, *taps), spread = weight.shape, np.broadcast_to(dilation, 2)
        sides = (int(d) * (count - 1) + 1 for d, count in zip(spread, taps, strict=True))
        return weight[:0].reshape(0, *(max(1, size) for size in (channels * groups, *sides)))
    except (AttributeError, TypeError, ValueError):  # invalid arguments: their check raises the error
        return np.empty((0, 1, 1, 1), np.float32)
