"""What a run leaves behind: tables, figures, plots, and the folder they are written to."""
