"""conv2d_backward on the CPU."""
