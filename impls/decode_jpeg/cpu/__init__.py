"""decode_jpeg on the CPU."""
