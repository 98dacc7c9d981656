"""Allocation rules: how many processors a job gets."""
