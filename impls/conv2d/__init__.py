"""conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1), as torch.nn.functional.conv2d has it.

Cross-correlation of input (N, C, H, W) with weight (K, C/groups, R, S); bias (K,); output (N, K, P, Q).

The package itself can be called: impls.conv2d(input, weight) takes NumPy arrays and computes them with whichever
implementation is fastest for the problem here (impls/conv2d/choice.py); impls.explain(...) says which that is.
"""

import importlib
import sys
import types


class _Operation(types.ModuleType):
    """This package, callable: impls.conv2d is the operation's folder and the operation.

    https://docs.python.org/3/reference/datamodel.html#customizing-module-attribute-access
    """

    def __call__(
        self, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, exact=False, plan=None, out=None
    ):
        """Cross-correlate input (N, C, H, W) with weight (K, C/groups, R, S): NumPy arrays of float32 or float64.

        Arguments, results and meaning are those of torch.nn.functional.conv2d, but that an input has its batch dimension and
        that OpenCV, if it is picked, leaves out taps of zero: a NaN does not count there. exact: sum products alone, as
        the definition does, without the transforms that round more. plan: "measure" tries the best three implementations on
        the first call of a problem, for 0.1 seconds beside five calls of each, and remembers. out: an array that is filled
        and returned, as NumPy's functions have it: contiguous in C's order, without memory of another argument's. Raises
        ValueError or TypeError that name the argument, and MemoryError where the arrays, or what every implementation lays
        out beside them, would not fit.
        """
        # impls imports cpu.auto: a package that did so itself would be imported by what it imports.
        if plan not in (None, "measure"):
            raise ValueError(f'plan must be None or "measure", not {plan!r}')
        call = self.cpu.auto.convolve
        return call(input, weight, bias, stride, padding, dilation, groups, exact=exact, source=plan or "wisdom", out=out)

    def __reduce__(self):
        """Pickle and copy by name, as functions are; modules cannot be pickled."""
        return importlib.import_module, (self.__name__,)

    __call__.__qualname__ = "conv2d"  # Python's own message about a missing argument names the operation


sys.modules[__name__].__class__ = _Operation
