"""Policies: who is considered first, who may pass whom, how many processors each gets."""

from sim.policies.base import Policy

__all__ = ["Policy"]
