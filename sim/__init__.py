"""moldsim's discrete-event cluster simulator: clock, machine, policies, results."""
