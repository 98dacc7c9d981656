"""Plots of one schedule."""
