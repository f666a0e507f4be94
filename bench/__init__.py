"""Benchmarks: the speed that the project promises, beside peers in the same run."""
