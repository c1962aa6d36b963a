"""Tests whether a commit is slower than another: both are measured in turn, with a verdict for every cell."""
