"""cpu.numpy with its hot spots removed: one pass for the update, only the products that are needed, nothing zero-filled.

Eight products: the nominal FLOPs but for those of the images' gradient. One pass over each parameter for the update, made as
soon as its gradient is there; extra memory: the gradients of one layer, and the layers' values. The script stays Python, as
in cpu.cython_update: NumPy for the products, adam_step's cpu.cython_fused for the update.
"""

import numpy as np

from impls import contract
from impls.contract import implementation
from impls.train_step.numpy_calls import dot
from impls.train_step.perceptron import forward, loss_and_gradient

UPDATE = contract.load("cpu.cython_fused", "adam_step")


@implementation(
    device="cpu",
    family="numpy",
    summary="NumPy: matrix products in place, the update in one compiled pass",
    limits={"network": "perceptron"},
)
def train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3):
    """One step of training in place; return the loss."""
    inputs, scores = forward(parameters, images.reshape(len(images), -1))
    loss, change = loss_and_gradient(scores, labels)
    for i in (4, 2, 0):
        weight, values = parameters[i], inputs[i // 2]
        gradients = dot(change.T, values, out=np.empty_like(weight)), change.sum(axis=0)
        if i:
            change = dot(change, weight)  # before the update: it is the old weight's
            change *= values > 0
        for place, gradient in enumerate(gradients, i):
            UPDATE(parameters[place], gradient, exp_avg[place], exp_avg_sq[place], step, lr)
    return loss
