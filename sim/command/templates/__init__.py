"""What ``moldsim new`` writes: a part of each kind, and its test."""
