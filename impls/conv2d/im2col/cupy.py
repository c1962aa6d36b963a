"""A patch matrix as a strided view, copied once, then one batched matrix product.

2 N K P Q (C/g) R S FLOPs; extra memory: the patch matrix, N C R S P Q elements. cuBLAS multiplies in full precision
unless CUPY_TF32 is set. im2col.strided on the device.
"""

from impls.contract import implementation
from impls.conv2d.cupy_arrays import pad, windows
from impls.conv2d.devices import require_cupy

require_cupy("im2col.cupy")


@implementation(
    device="cuda",
    family="im2col",
    summary="CuPy: a strided view copied to a patch matrix, then one matrix product",
    arrays="cupy",
)
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    view = windows(pad(input, padding), weight.shape[2:], stride, dilation)
    n, _, p, q = view.shape[:4]
    k = len(weight)
    taps = weight[0].size
    # (N, C, P, Q, R, S) to (N, groups, C/groups R S, P Q): here the patches are copied.
    columns = view.transpose(0, 1, 4, 5, 2, 3).reshape(n, groups, taps, p * q)
    output = (weight.reshape(groups, k // groups, taps) @ columns).reshape(n, k, p, q)
    if bias is not None:
        output += bias[:, None, None]
    return output
