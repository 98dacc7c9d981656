"""Errors of the sim package, and the ranges and choices that keys must keep to."""

from dataclasses import fields
from functools import partial
from typing import Any, Literal, get_args, get_origin

from predictors import errors
from predictors.errors import PredictorError
from predictors.plain import shown_plainly
from workloads.errors import WorkloadError


class SimError(ValueError):
    """A simulation cannot be configured or run as asked."""


class ConfigError(SimError):
    """A configuration value is out of range; the message names its key."""


class PolicyError(SimError):
    """A policy took a decision that the machine cannot carry out."""


class PluginError(SimError):
    """A part of somebody else's answered what cannot be used, or failed; the message names it."""


class StatisticsError(SimError):
    """Samples do not allow the statistic that is asked for."""


class SweepWarning(UserWarning):
    """Some runs of a sweep failed; the message says how many, and of what the first."""


class InvariantError(AssertionError):
    """The engine broke one of its own rules (only raised under ``sim.check=true``)."""


BAD_INPUT = (SimError, WorkloadError, PredictorError, OSError, MemoryError)
"""What a user can put right: then one line and status 2, no traceback."""


def one_line(error: BaseException) -> str:
    """Return an error's message on one line."""
    if isinstance(error, OSError) and error.filename is not None:
        return shown_plainly(f"{error.filename}: {error.strerror}")
    text = " ".join(str(error).split()) or type(error).__name__
    return shown_plainly(f"not enough memory: {text}" if isinstance(error, MemoryError) else text)


AT_LEAST_0 = errors.AT_LEAST_0._replace(error=ConfigError)
AT_LEAST_1 = errors.AT_LEAST_1._replace(error=ConfigError)
POSITIVE = errors.POSITIVE._replace(error=ConfigError)
FINITE = errors.FINITE._replace(error=ConfigError)
POSITIVE_AND_FINITE = errors.POSITIVE_AND_FINITE._replace(error=ConfigError)
AT_LEAST_1_AND_FINITE = errors.AT_LEAST_1_AND_FINITE._replace(error=ConfigError)
SHARE = errors.SHARE._replace(error=ConfigError)
POSITIVE_SHARE = errors.POSITIVE_SHARE._replace(error=ConfigError)
BETWEEN_0_AND_1 = errors.BETWEEN_0_AND_1._replace(error=ConfigError)
check_choice = partial(errors.check_choice, error=ConfigError)
Bounds = partial(errors.Bounds, error=ConfigError)


def check_choices(given: Any) -> None:
    """Refuse a value of a dataclass's field that is none of those which its type names."""
    for field in fields(given):
        if get_origin(field.type) is Literal:
            check_choice(get_args(field.type), **{field.name: getattr(given, field.name)})


def up_to(most: int) -> errors.Bounds:
    """Return the range from 1 to a number."""
    return Bounds(f"at least 1 and at most {most:,}", 1, most)


def between(least: float, most: float) -> errors.Bounds:
    """Return the range from one number to another."""
    return Bounds(f"at least {least:g} and at most {most:g}", least, most)
