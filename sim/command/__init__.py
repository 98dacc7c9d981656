"""The command ``moldsim`` and its subcommands."""
