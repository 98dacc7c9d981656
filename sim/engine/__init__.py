"""The engine: events in the contract's order, running jobs, their changes and their records."""
