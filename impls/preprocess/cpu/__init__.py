"""preprocess on the CPU."""
