"""conv2d_backward on a CUDA device."""
