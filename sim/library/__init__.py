"""The program as a Python library."""
