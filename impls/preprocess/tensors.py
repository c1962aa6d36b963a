"""Resizing and pasting by torch, for the implementations that call it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional

from impls.conv2d.tensors import tensor
from impls.preprocess.arguments import Region, fit
from impls.preprocess.stages import crop, mark, paste


def resized(pixels: np.ndarray, region: Region, height: int, width: int) -> torch.Tensor:
    """The region's pixels (1, 3, height, width) in float32, bilinear."""
    part = tensor(crop(pixels, region)).permute(2, 0, 1)[None].float()
    return functional.interpolate(part, (height, width), mode="bilinear", align_corners=False)


def finish(response: torch.Tensor, region: Region, threshold: float, shape: Any) -> np.ndarray:
    """The mask of an image of this shape, from a response (size, size)."""
    height, width = fit(region, len(response))
    return paste(mark(response.numpy()[:height, :width], threshold), region, shape)
