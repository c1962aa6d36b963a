"""train_step(network, parameters, exp_avg, exp_avg_sq, images, labels, step, lr=1e-3): one step of training.

Forward, loss, gradients, and one step of Adam on every parameter, in place; the loss is returned. network: "perceptron",
"convolutional" or "text" (impls/train_step/networks.py). parameters, exp_avg and exp_avg_sq: lists of float32 arrays, one
for each of the network's parameters. images (N, 1, 28, 28), labels (N,) from 0 to 9. step: its number, from 1, which also
decides what drops out. On a device all of them are there, and the loss is waited for.
"""
