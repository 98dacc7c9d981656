"""The true runtimes of a workload's jobs: applications, sizes, noise."""
