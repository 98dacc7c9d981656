"""The state of a run and its compiled steps, what policies see, and the decisions they return."""
