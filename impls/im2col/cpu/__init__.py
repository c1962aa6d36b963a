"""im2col on the CPU."""
