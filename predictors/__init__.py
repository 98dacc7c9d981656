"""Runtime predictors, on their own and in the loop of the simulator."""
