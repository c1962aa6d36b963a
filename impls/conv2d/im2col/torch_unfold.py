"""torch.nn.functional.unfold, then one matrix product.

2 N K P Q (C/g) R S FLOPs; extra memory: the patch matrix, N C R S P Q elements, and where the padding
is uneven the padded image.
https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.unfold.html
"""

from torch.nn import functional

from impls.contract import implementation
from impls.conv2d.arguments import output_shape
from impls.conv2d.geometry import require_patches
from impls.conv2d.tensors import pad_unevenly, tensor


@implementation(device="cpu", family="im2col", summary="torch: unfold, then one matrix product")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    shape = output_shape(input.shape, weight.shape, stride, padding, dilation)
    if not len(input):
        return tensor(input).new_empty(shape).numpy()  # unfold refuses an empty batch
    require_patches(input, weight.shape[2:], shape[2:])
    image, padding = pad_unevenly(tensor(input), padding)
    columns = functional.unfold(image, weight.shape[2:], dilation, padding, stride)
    columns = columns.reshape(shape[0], groups, weight[0].size, -1)
    output = tensor(weight).reshape(groups, -1, weight[0].size) @ columns
    output = output.reshape(shape)
    if bias is not None:
        output += tensor(bias)[:, None, None]
    return output.numpy()
