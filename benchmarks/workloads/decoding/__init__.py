"""Decoding JPEGs: the task, and the decoder that its answers are held against."""
