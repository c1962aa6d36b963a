"""Reads stored results: tables, comparisons, history, export."""
