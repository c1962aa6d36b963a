"""conv_transpose2d on a CUDA device."""
