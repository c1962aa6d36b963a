"""adam_step on a CUDA device."""
