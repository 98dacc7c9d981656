"""Passes of queues and of malleable jobs, compiled and in Python, and what they keep."""
