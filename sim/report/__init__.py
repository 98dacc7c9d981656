"""The comparison of many runs as tables, plots and one page."""
