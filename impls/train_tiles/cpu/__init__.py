"""train_tiles on the CPU."""
