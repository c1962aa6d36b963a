"""The commands of `python -m benchmarks`, which `convbench` runs in the measured environment."""
