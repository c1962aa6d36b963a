"""Shared by several commands: options, output and errors."""
