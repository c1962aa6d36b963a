"""Which commit made a cell slower: halves a range of commits by gates of one cell."""
