"""Errors of the sim package."""


class SimError(ValueError):
    """A simulation cannot be configured or run as asked."""


class ConfigError(SimError):
    """A configuration value is out of range; the message names its key."""


class PolicyError(SimError):
    """A policy took a decision that the machine cannot carry out."""


class StatisticsError(SimError):
    """Samples do not allow the statistic that is asked for."""


class InvariantError(AssertionError):
    """The engine broke one of its own rules (only raised under ``sim.check=true``)."""
