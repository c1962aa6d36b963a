"""preprocess on a CUDA device, decoded on the CPU."""
