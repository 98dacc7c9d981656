"""Checking schedules of this and of other simulators, rule by rule."""
