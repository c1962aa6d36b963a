"""impls/train_step/perceptron.py with static types, and with functions of C for its own: see there."""

import numpy as np

from impls.train_step.numpy_calls import dot, fill


def step(update, list parameters, list exp_avg, list exp_avg_sq, images, labels, number, double lr):
    """Update every parameter and its moments in place by `update`; return the loss."""
    cdef Py_ssize_t i, count = len(parameters)
    cdef list gradients = [np.empty_like(parameter) for parameter in parameters], inputs = []
    cdef object scores, change
    cdef double loss
    for i in range(count):
        fill(gradients[i])
    scores = forward(parameters, images.reshape(len(images), -1), inputs)
    change = loss_gradient(scores, labels, &loss)
    backward(parameters, gradients, inputs, change)
    for i in range(count):
        update(parameters[i], gradients[i], exp_avg[i], exp_avg_sq[i], number, lr)
    return loss


cdef object forward(list parameters, object values, list inputs):
    """Put the inputs of each layer into `inputs`; return the scores (N, 10)."""
    cdef Py_ssize_t i
    for i in range(0, len(parameters), 2):
        if i:
            values = np.maximum(values, 0)
        inputs.append(values)
        values = dot(values, parameters[i].T) + parameters[i + 1]
    return values


cdef object loss_gradient(object scores, object labels, double *loss):
    """Put the mean negative log-likelihood of labels (N,) into `loss`; return its gradient (N, 10) by the scores."""
    cdef Py_ssize_t count = len(labels)
    cdef object places = np.arange(count), shares, sums, gradient
    scores = scores - scores.max(axis=1, keepdims=True)
    shares = np.exp(scores)
    sums = shares.sum(axis=1, keepdims=True)
    loss[0] = np.mean(np.log(sums[:, 0]) - scores[places, labels])
    gradient = shares / sums
    gradient[places, labels] -= 1
    return gradient / count


cdef void backward(list parameters, list gradients, list inputs, object change) except *:
    """Add to the gradients of all parameters. change: the loss's gradient by the scores."""
    cdef Py_ssize_t i
    for i in range(len(inputs) - 1, -1, -1):
        gradients[2 * i] += dot(change.T, inputs[i])
        gradients[2 * i + 1] += change.sum(axis=0)
        change = dot(change, parameters[2 * i])
        if i:
            change = change * (inputs[i] > 0)
