"""A call's plan looked up without Python's own time: see checker() in arguments.py, whose check this spares.

The check in Python takes 2 us, and 8 where a convolution has filled the caches in between; this one a third of that.
"""

import numpy as np

cimport openmp

cdef object ndarray = np.ndarray
cdef object absent = object()


cdef inline bint is_plain(object setting):
    """Whether it is of types in which what is equal means the same: 1.0 and True are 1 as well."""
    if type(setting) is int or type(setting) is str:
        return True
    if type(setting) is not tuple:
        return False
    for each in <tuple> setting:
        if type(each) is not int:
            return False
    return True


def thread_count():
    """How many threads OpenMP would use now."""
    return openmp.omp_get_max_threads()


def dispatching(dispatcher, plan, checked, fallback):
    """Make the function that calls what the dispatcher knows of a call, and `checked` where a call has to be looked at.

    dispatcher: the Dispatcher of arguments.py, plan: what its keys of these calls begin with. checked: takes the same
    arguments as the function that is made. fallback: what computes a call where the plan's function runs out of memory, if
    that function was picked among several; None where it was not.
    """
    cdef bint picked = fallback is not None

    def conv2d(input=absent, weight=absent, bias=None, stride=1, padding=0, dilation=1, groups=1, *, out=None):
        cdef tuple found
        cdef int threads
        if input is absent or weight is absent:  # Python says which is missing
            return checked(**{name: one for name, one in (("input", input), ("weight", weight)) if one is not absent})
        if out is not None:
            return checked(input, weight, bias, stride, padding, dilation, groups, out=out)
        if type(input) is not ndarray or type(weight) is not ndarray or not (bias is None or type(bias) is ndarray):
            return checked(input, weight, bias, stride, padding, dilation, groups)
        dtype = input.dtype
        if weight.dtype is not dtype or not (bias is None or bias.dtype is dtype):
            return checked(input, weight, bias, stride, padding, dilation, groups)
        if not (input.flags.aligned and weight.flags.aligned and (bias is None or bias.flags.aligned)):
            return checked(input, weight, bias, stride, padding, dilation, groups)
        if not (is_plain(stride) and is_plain(padding) and is_plain(dilation) and type(groups) is int):
            return checked(input, weight, bias, stride, padding, dilation, groups)
        bias_shape = None if bias is None else bias.shape
        threads = openmp.omp_get_max_threads() if picked else 1
        found = <tuple> dispatcher[
            (plan, input.shape, weight.shape, bias_shape, dtype, stride, padding, dilation, groups, threads)
        ]
        if found[4]:  # which memory has to be asked for
            return checked(input, weight, bias, stride, padding, dilation, groups)
        if not picked:
            return found[0](input, weight, bias, found[1], found[2], found[3], groups)
        try:
            return found[0](input, weight, bias, found[1], found[2], found[3], groups)
        except MemoryError:
            pass  # with what it had laid out
        return fallback(input, weight, bias, found[1], found[2], found[3], groups)

    return conv2d
