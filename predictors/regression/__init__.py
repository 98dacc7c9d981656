"""Log-log regressions over processors and sizes, after Barnes et al. and Garren."""
