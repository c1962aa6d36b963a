"""train_step on a CUDA device."""
