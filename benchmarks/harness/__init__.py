"""One cell: the implementation loaded, checked, timed and recorded; the benchmark types that asv runs."""
