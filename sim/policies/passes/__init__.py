"""Compiled passes: rules over the tables of a run, from instant to instant without Python."""
