"""cpu.numpy with its update compiled and nothing else: the script stays Python, and Adam is a typed loop for each formula.

The operations of cpu.numpy, but three passes over each parameter for the update, which takes no extra memory; otherwise its
extra memory. From a post on speeding up Chainer's MNIST example with Cython, where this alone was faster than Python.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step import perceptron

UPDATE = contract.load("cpu.cython_typed", "adam_step")


@implementation(
    device="cpu", family="numpy", summary="NumPy: only the update compiled by Cython", limits={"network": "perceptron"}
)
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return perceptron.step(UPDATE, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
