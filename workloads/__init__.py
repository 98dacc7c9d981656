"""Where jobs come from: logs, models, and the ground truth of applications."""
