"""The consensus of several methods, weighed by what each got right."""
