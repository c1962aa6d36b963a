"""Clocks for the CPU and for CUDA devices, thread pools, memory and start-up: nothing here knows asv or a workload."""
