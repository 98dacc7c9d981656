"""Background load on a shared machine: models, sensors, and what is believed to come."""
