"""conv2d by patches laid out as a matrix (im2col), then one matrix product."""
