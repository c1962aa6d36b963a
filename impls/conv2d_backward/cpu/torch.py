"""aten::convolution_backward on the CPU, which is what torch's autograd calls for conv2d.

4 N K P Q (C/g) R S FLOPs. The baseline of every table; extra memory where the padding is uneven: the padded image and
its gradient. https://docs.pytorch.org/docs/stable/nn.functional.html#convolution-functions
"""

import torch

from impls.contract import implementation
from impls.conv2d.tensors import pad_unevenly, tensor


@implementation(device="cpu", family="library", summary="torch.ops.aten.convolution_backward")
def conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1):
    """The gradients of conv2d's input (N, C, H, W), weight (K, C/groups, R, S) and bias, from that of its output."""
    image, even = pad_unevenly(tensor(input), padding)
    # torch gives the weight's gradient the weight's layout, and one of its kernels refuses any but the contiguous.
    kernels = tensor(weight).contiguous()
    grad_image, grad_weight, grad_bias = torch.ops.aten.convolution_backward(
        *(tensor(grad_output), image, kernels, [len(weight)]),
        *(stride, even, dilation, False, (0, 0), groups, (True, True, True)),  # not transposed, all three gradients
    )
    top, left = (before - cut for (before, _), cut in zip(padding, even, strict=True))
    grad_input = grad_image[:, :, top : top + input.shape[2], left : left + input.shape[3]]
    return grad_input.numpy(), grad_weight.numpy(), grad_bias.numpy()
