"""Speedup curves of one application: Amdahl, universal scalability, Downey by least squares."""
