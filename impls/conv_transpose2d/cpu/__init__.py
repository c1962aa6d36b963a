"""conv_transpose2d on the CPU."""
