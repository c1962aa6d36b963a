"""conv2d on the CPU, without a patch matrix."""
