"""Policies: who is considered first, who may pass whom, how many processors each gets."""
