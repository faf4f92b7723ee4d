"""Benchmarks of vsr against raw engines and peers."""
