"""Times implementations in turn with other libraries, and the choice of `cpu.auto`."""
