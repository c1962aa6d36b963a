"""cpu.numpy with its script in Cython with static types: counters, lists and the loss are C's, the arrays stay objects.

The operations and extra memory of cpu.numpy, whose update stays Python. From a post on speeding up Chainer's MNIST example
with Cython, where this was slower than Python too.
"""

import impls.train_step._cython_perceptron as _cython_perceptron  # type: ignore[import-not-found]
from impls import contract
from impls.contract import implementation

UPDATE = contract.load("cpu.numpy", "adam_step")


@implementation(
    device="cpu", family="numpy", summary="Cython: the script with static types", limits={"network": "perceptron"}
)
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return _cython_perceptron.step(UPDATE, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
