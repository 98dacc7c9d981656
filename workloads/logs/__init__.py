"""Recorded workloads: readers of SWF, sacct, Batsim and the archive, cleaning, description."""
