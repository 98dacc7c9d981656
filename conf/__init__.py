"""Hydra configuration: one folder a group, one file an option."""
