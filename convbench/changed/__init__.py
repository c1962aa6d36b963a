"""Finds the differences between two installed builds, and the cells that they can affect."""
