"""The way from a call of conv2d to what computes it: one look-up by what its arguments look like.

Compiled, because sums that fill the caches take Python's own code and data from them: each Python function between a call
and its kernel then takes as long as thousands of multiply-adds (docs/auto.md).
"""

cimport openmp

cdef int MOST = 4096  # calls that are remembered; after so many all are forgotten, which takes no list of who came last


cdef inline bint _plain(value):
    """Whether what equals it means the same: 1.0 and True, which equal 1, do not."""
    if type(value) is tuple:
        return len(value) == 2 and type(value[0]) is int and type(value[1]) is int
    return type(value) is int or type(value) is str


def quick(array, plan, compute):
    """Make conv2d a function that remembers what computes the calls it has seen, whose arguments need no check again.

    array: the class of input, weight and bias. plan(*call) checks a call's arguments and returns (function, settings in the
    form it takes), or None where each call must be asked about; compute(*call, exact=, by_rule=) checks and computes, also
    where there was no room for what the function lays out. The function's attribute `forget` empties its memory.
    """
    cdef dict known = {}

    def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, *, exact=False, by_rule=False):
        if (
            type(input) is array and type(weight) is array and (bias is None or type(bias) is array)
            and _plain(stride) and _plain(padding) and _plain(dilation) and type(groups) is int
        ):
            dtype = input.dtype
            if weight.dtype is dtype and (bias is None or bias.dtype is dtype):
                bias_shape = None if bias is None else bias.shape
                key = (
                    input.shape, weight.shape, bias_shape, dtype, stride, padding, dilation, groups,
                    bool(exact), bool(by_rule), openmp.omp_get_max_threads(),
                )
                found = known.get(key)
                if found is None:
                    found = plan(input, weight, bias, stride, padding, dilation, groups, exact, by_rule)
                    if found is not None:
                        if len(known) >= MOST:
                            known.clear()
                        known[key] = found
                if found is not None:
                    function, settings = found
                    strides, paddings, dilations, count = settings
                    try:
                        return function(input, weight, bias, strides, paddings, dilations, count)
                    except MemoryError:
                        pass
        return compute(input, weight, bias, stride, padding, dilation, groups, exact=exact, by_rule=by_rule)

    conv2d.forget = known.clear
    return conv2d
