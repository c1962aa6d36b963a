"""Finds the commit that made a cell slower: bisects a range of commits by gates of one cell."""
