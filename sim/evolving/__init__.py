"""Evolving jobs and failing nodes: cycles, checkpoints, restarts, and what jobs ask for."""
