"""One simulation from its configuration to its artefacts, with its replications."""
