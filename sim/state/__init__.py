"""The state of a simulated machine, what policies see of it, and the decisions they return."""
