"""torch.compile of one convolution, which is one library kernel already: the overhead of a graph compiler.

2 N K P Q (C/g) R S FLOPs; extra memory as cpu.torch. Every new shape compiles for a second or more, so the suite
measures it on request and for named layers alone. https://docs.pytorch.org/docs/stable/generated/torch.compile.html
"""

import functools
import os
import shutil
from pathlib import Path

import torch
from torch.nn import functional

from impls import private_cache
from impls.contract import Unavailable, implementation
from impls.conv2d.tensors import kernels, pad_unevenly, tensor

if not shutil.which(os.environ.get("CXX", "g++")):
    raise Unavailable("cpu.torch_compile needs a C++ compiler; install g++ or set CXX")
try:  # torch's own is in the shared temporary folder under a name that another user can take
    if named := os.environ.get("TORCHINDUCTOR_CACHE_DIR"):
        os.makedirs(named, mode=0o700, exist_ok=True)  # noqa: PTH103  # as torch does
        private_cache.require(Path(named))
    else:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(private_cache.folder("torchinductor"))
except (OSError, Unavailable) as error:
    raise Unavailable(f"cpu.torch_compile needs a folder of its own: {error}") from None


@implementation(device="cpu", family="library", summary="torch.compile of torch.nn.functional.conv2d")
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S)."""
    image, padding = pad_unevenly(tensor(input), padding)
    start = None if bias is None else tensor(bias)
    with torch.no_grad():
        return _compiled()(image, kernels(weight), start, stride, padding, dilation, groups).numpy()


@functools.cache
def _compiled():
    """Made at the first call: the compiler takes seconds to import."""
    # One compilation a shape, however many there are; in this process, since workers would outlive the call.
    torch._dynamo.config.recompile_limit = 1 << 16
    return torch.compile(lambda *arguments: functional.conv2d(*arguments), dynamic=False, options={"compile_threads": 1})
