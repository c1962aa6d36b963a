"""train_step on the CPU."""
