"""Asks the suite of the working tree: other shapes, profiles."""
