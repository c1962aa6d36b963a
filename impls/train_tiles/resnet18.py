"""ResNet-18: 7x7 convolution, pooling, four stages of two residual blocks of 3x3 layers, a mean and one linear layer.

He et al., Deep residual learning for image recognition, arXiv 1512.03385. Its modules have the names that torchvision gave
them, so that weights trained elsewhere can be loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from impls.train_tiles.arguments import CLASSES, WIDTHS


class Block(nn.Module):
    """Two 3x3 layers whose input is added to their output: (N, channels, H, W) to (N, width, H / stride, W / stride)."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        if channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))
        else:
            self.downsample = nn.Sequential()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        values = functional.relu(self.bn1(self.conv1(images)))
        return functional.relu(self.bn2(self.conv2(values)) + self.downsample(images))


class ResNet18(nn.Module):
    """Images (N, 3, H, W) to scores (N, 10). The parameters are 11,181,642 numbers, drawn as torch draws them."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, WIDTHS[0], 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(WIDTHS[0])
        channels = WIDTHS[0]
        for i, width in enumerate(WIDTHS, 1):
            stride = 1 if channels == width else 2
            self.add_module(f"layer{i}", nn.Sequential(Block(channels, width, stride), Block(width, width, 1)))
            channels = width
        self.fc = nn.Linear(WIDTHS[-1], CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        values = functional.max_pool2d(functional.relu(self.bn1(self.conv1(images))), 3, 2, padding=1)
        for i in range(1, len(WIDTHS) + 1):
            values = self.get_submodule(f"layer{i}")(values)
        return self.fc(values.mean(dim=(2, 3)))


def of(parameters: Sequence[np.ndarray], statistics: Sequence[np.ndarray]) -> ResNet18:
    """The network on these arrays, whose memory it shares: arguments.py has their order and shapes."""
    with torch.device("meta"):
        network = ResNet18()
    state: dict[str, Any] = {name: torch.zeros((), dtype=torch.int64) for name, _ in network.named_buffers()}
    running = [name for name in state if not name.endswith("num_batches_tracked")]
    state |= zip(running, map(torch.from_numpy, statistics), strict=True)
    state |= zip(dict(network.named_parameters()), map(torch.from_numpy, parameters), strict=True)
    network.load_state_dict(state, assign=True)
    return network
