"""conv2d_backward(grad_output, input, weight, stride=1, padding=0, dilation=1, groups=1): the gradients of conv2d.

grad_output (N, K, P, Q), input (N, C, H, W), weight (K, C/groups, R, S); the result is the tuple (grad_input, grad_weight,
grad_bias), of the shapes of input and weight and (K,). In comments p and q count the rows and columns of grad_output, y and x
the input's.
"""
