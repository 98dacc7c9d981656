"""Molding at schedule time: counts stay open until a job could start."""
