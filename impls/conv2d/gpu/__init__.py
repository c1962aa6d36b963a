"""conv2d on a CUDA device."""
