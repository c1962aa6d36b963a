"""read_batch on the CPU."""
