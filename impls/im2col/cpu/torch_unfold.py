"""torch.nn.Unfold, which lays out images of two axes; one axis goes as an image with a single row.

No FLOPs; extra memory: none, and where the padding holds something else than zeros the padded image.
https://docs.pytorch.org/docs/stable/generated/torch.nn.Unfold.html
"""

from torch.nn import Unfold, functional

from impls.contract import implementation
from impls.conv2d.tensors import tensor


@implementation(device="cpu", family="library", summary="torch: Unfold", limits={"rank": {1, 2}})
def im2col(image, kernel, stride=1, padding=0, dilation=1, fill=0):
    """Lay the windows of an image out as the columns of a matrix (taps, pixels)."""
    if image.ndim == 1:
        image, kernel, stride, padding, dilation = image[None], (1, *kernel), (1, *stride), (0, *padding), (1, *dilation)
    pixels = tensor(image)[None, None]
    if fill != 0:  # so is not a number
        (vertical, horizontal), padding = padding, (0, 0)
        pixels = functional.pad(pixels, (horizontal, horizontal, vertical, vertical), value=float(fill))
    return Unfold(kernel, dilation, padding, stride)(pixels)[0].numpy()
