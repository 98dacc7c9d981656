"""Predictors in the loop of a simulation: what they learn from runs, and oracles."""
