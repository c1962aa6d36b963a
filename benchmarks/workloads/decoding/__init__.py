"""Decoding JPEGs: the task, and the reference decoder."""
