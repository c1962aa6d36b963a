"""Asks the suite of the working tree for other shapes and profiles."""
