"""Is a commit slower than another? Both measured in turn on this machine, with a verdict for every cell."""
