"""Helpers for data, files, text and processes, which import nothing else of convbench."""
