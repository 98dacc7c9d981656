"""Machines: dedicated, shared, with failing or disturbed nodes."""
