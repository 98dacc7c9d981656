"""Reallocation rules: how many processors malleable jobs hold while they run."""
