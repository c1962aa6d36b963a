"""adam_step on the CPU."""
