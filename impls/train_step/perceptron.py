"""One step of training the perceptron in NumPy alone: the script that the rungs of train_step run, compiled or not.

As Chainer 1.5 computes it, of which a post on Cython tells: gradients are filled with zeros and then added to, each layer
makes three products, and the images have a gradient too, which nothing uses. The update is no part of the script; the caller
passes it.

meson.build compiles a copy of this file by Cython. It has no annotations, which Cython would take for types.
"""

import numpy as np

from impls.train_step.numpy_calls import dot, fill


def step(update, parameters, exp_avg, exp_avg_sq, images, labels, number, lr):
    """Update every parameter and its moments in place; return the loss.

    update: an implementation of adam_step. number: that of the step, from 1. The others are arguments of train_step.
    """
    gradients = [np.empty_like(parameter) for parameter in parameters]
    for gradient in gradients:
        fill(gradient)
    inputs, scores = forward(parameters, images.reshape(len(images), -1))
    loss, change = loss_and_gradient(scores, labels)
    backward(parameters, gradients, inputs, change)
    for parameter, gradient, first, second in zip(parameters, gradients, exp_avg, exp_avg_sq, strict=True):
        update(parameter, gradient, first, second, number, lr)
    return loss


def forward(parameters, values):
    """The inputs of each layer, the first being `values` (N, 784), and the scores (N, 10)."""
    inputs = []
    for i in range(0, len(parameters), 2):
        if i:
            values = np.maximum(values, 0)
        inputs.append(values)
        values = dot(values, parameters[i].T) + parameters[i + 1]
    return inputs, values


def loss_and_gradient(scores, labels):
    """The mean negative log-likelihood of labels (N,), and its gradient (N, 10) by the scores."""
    places = np.arange(len(labels))
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    sums = shares.sum(axis=1, keepdims=True)
    loss = float(np.mean(np.log(sums[:, 0]) - scores[places, labels]))
    gradient = shares / sums
    gradient[places, labels] -= 1
    return loss, gradient / len(labels)


def backward(parameters, gradients, inputs, change):
    """Add to the gradients of all parameters. change: the loss's gradient by the scores."""
    for i in range(len(inputs) - 1, -1, -1):
        gradients[2 * i] += dot(change.T, inputs[i])
        gradients[2 * i + 1] += change.sum(axis=0)
        change = dot(change, parameters[2 * i])
        if i:
            change = change * (inputs[i] > 0)
