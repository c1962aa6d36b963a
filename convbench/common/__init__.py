"""Plain data, files, text and processes: imports nothing else of convbench."""
