"""The state of a simulated machine as policies see it, and the decisions they return."""
