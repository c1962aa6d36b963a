"""What `python -m benchmarks` does for `convbench` in the measured environment."""
