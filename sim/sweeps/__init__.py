"""Sweeps and multiruns: which runs there are, which are finished, how they are packed."""
