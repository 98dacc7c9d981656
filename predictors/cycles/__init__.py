"""Applications that work in cycles: what a run, its messages and its checkpoints will take."""
