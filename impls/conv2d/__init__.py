"""conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1), as torch.nn.functional.conv2d has it.

Cross-correlation of input (N, C, H, W) with weight (K, C/groups, R, S); bias (K,); output (N, K, P, Q).

The package itself can be called: impls.conv2d(input, weight) takes NumPy arrays and computes them with whichever
implementation is fastest for the problem here (impls/conv2d/choice.py); impls.explain(...) says which that is.
"""

import sys
import types


class _Operation(types.ModuleType):
    """This package, callable: impls.conv2d is the operation's folder and the operation, cpu.auto.

    https://docs.python.org/3/reference/datamodel.html#customizing-module-attribute-access
    """


sys.modules[__name__].__class__ = _Operation

from impls.conv2d.cpu import auto  # noqa: E402  # which comes back here for the name of this package

# As it is, not in a function of its own, which would take as long as the look-up of what to call.
_Operation.__call__ = staticmethod(auto.conv2d)  # type: ignore[method-assign]
