"""Measures on many machines, the workers of a dask cluster."""
