"""Errors of the workloads package."""


class WorkloadError(ValueError):
    """A workload cannot be read, generated or used as asked.

    The message names the value, where it came from (file and line, job, or
    configuration key) and what would be accepted.
    """
