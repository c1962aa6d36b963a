"""Measures commits through asv and stores their results."""
