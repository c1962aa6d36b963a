"""cpu.numpy with its script compiled as it is: the file, unchanged and without types, goes through Cython.

The operations and extra memory of cpu.numpy, whose update stays Python. From a post on speeding up Chainer's MNIST example
with Cython, where this was slower: the time is that of NumPy and BLAS, and compiling what calls them changes nothing.
"""

import impls.train_step._cython_perceptron_untyped as _cython_perceptron_untyped  # type: ignore[import-not-found]
from impls import contract
from impls.contract import implementation

UPDATE = contract.load("cpu.numpy", "adam_step")


@implementation(
    device="cpu", family="numpy", summary="Cython: the script compiled unchanged", limits={"network": "perceptron"}
)
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return _cython_perceptron_untyped.step(UPDATE, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
