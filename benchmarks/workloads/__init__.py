"""The computed problems: inputs, references with error bounds, and a task for each operation."""
