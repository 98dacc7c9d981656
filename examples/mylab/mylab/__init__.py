"""A policy, a predictor and a workload of somebody's own."""
