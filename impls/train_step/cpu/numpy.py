"""The perceptron in NumPy alone: forward, backward and Adam as plain functions over six arrays. The ladder's first rung.

The nominal FLOPs in nine products, of which that for the images' gradient is not needed, and 14 operations over each
parameter for the update; extra memory: a gradient of every parameter, the largest of them once more, and the layers' values.
From a post on speeding up Chainer's MNIST example with Cython: its script and its update in Python.
"""

from impls import contract
from impls.contract import implementation
from impls.train_step import perceptron

UPDATE = contract.load("cpu.numpy", "adam_step")


@implementation(device="cpu", family="numpy", summary="NumPy: script and update in Python", limits={"network": "perceptron"})
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    return perceptron.step(UPDATE, parameters, exp_avg, exp_avg_sq, images, labels, step, lr)
