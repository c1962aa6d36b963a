"""Reads what the suite wrote, and says what it means."""
