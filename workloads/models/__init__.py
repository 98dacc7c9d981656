"""Workload models: Lublin's, Downey's, Tsafrir's estimates, decks of evolving jobs."""
