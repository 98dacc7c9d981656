"""Cycles and phases of evolving jobs."""
