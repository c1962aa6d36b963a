"""aten::convolution_backward on a CUDA device, float32 as float32.

4 N K P Q (C/g) R S FLOPs or fewer where cuDNN picks a fast algorithm; extra memory: the work space that it asks for.
TensorFloat-32 is off, cuDNN chooses by its heuristics, not by trying (cudnn.benchmark off), and only among algorithms
that give the same gradients every time. https://docs.pytorch.org/docs/stable/nn.functional.html#convolution-functions
"""

import torch

from impls.contract import implementation
from impls.conv2d.devices import require_torch
from impls.conv2d.tensors import pad_unevenly

require_torch("gpu.torch")


@implementation(device="cuda", family="cudnn", summary="torch.ops.aten.convolution_backward, TF32 off", arrays="torch")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    image, even = pad_unevenly(input, padding)
    with torch.backends.cudnn.flags(
        enabled=True, benchmark=False, deterministic=True, allow_tf32=False, fp32_precision="ieee"
    ):
        grad_image, *others = torch.ops.aten.convolution_backward(
            *(grad_output, image, weight, [len(weight)]),
            *(stride, even, dilation, False, (0, 0), groups, (True, True, True)),  # not transposed, all three gradients
        )
    top, left = (before - cut for (before, _), cut in zip(padding, even, strict=True))
    return grad_image[:, :, top : top + input.shape[2], left : left + input.shape[3]], *others
