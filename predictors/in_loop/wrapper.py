"""Predictors around predictors: what a wrapper does not change is as without it.

A wrapper answers in its own name only for what it changes. Whatever else the wrapped
predictor can do or asks for (to be told of load or of the truth, calibration runs, a
count to measure next) is found through `provider` and `setting`.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from predictors.base import (
    Explanation,
    FloatArray,
    IntArray,
    Observation,
    RuntimePredictor,
    VisibleJobs,
)

Capability = TypeVar("Capability")


def has_curves(predictor: RuntimePredictor) -> bool:
    """Say whether a predictor ever says anything; see `RuntimePredictor`."""
    return bool(vars(type(predictor)).get("has_curves", True))


class Wrapper:
    """Another predictor, to begin with unchanged.

    Parameters
    ----------
    before : RuntimePredictor
        What is wrapped; it may be a wrapper itself.
    """

    def __init__(self, before: RuntimePredictor) -> None:
        self.before = before

    @property
    def learns(self) -> bool:
        """Whether the wrapped predictor wants to be told of finished runs."""
        return self.before.learns

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        self.before.attach(jobs)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of job index `job` at each count, seconds."""
        return self.before.curve(job, counts)

    def observe(self, observation: Observation) -> bool:
        """Pass on a finished run."""
        return self.before.observe(observation)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say where a belief comes from."""
        return self.before.explain(job, nprocs)

    def replace(self, change: Callable[[RuntimePredictor], RuntimePredictor]) -> None:
        """Put in the place of each predictor inside what `change` makes of it."""
        self.before = change(self.before)


def layers(predictor: Any) -> list[Any]:
    """Return a predictor and those that it wraps, the outermost first."""
    found = [predictor]
    while isinstance(found[-1], Wrapper):
        found.append(found[-1].before)
    return found


def provider(predictor: Any, capability: type[Capability]) -> Capability | None:
    """Return who of a predictor and those that it wraps has a capability, None if nobody.

    Parameters
    ----------
    predictor : RuntimePredictor
    capability : type
        A protocol that can be checked at run time, such as
        `predictors.under_load.load_aware.NeedsLoad`.

    Examples
    --------
    >>> from predictors.in_loop.oracle import NeedsTruth, Oracle
    >>> oracle = Oracle()
    >>> provider(Wrapper(Wrapper(oracle)), NeedsTruth) is oracle
    True
    """
    return next((one for one in layers(predictor) if isinstance(one, capability)), None)


def setting(predictor: Any, name: str, default: Any) -> Any:
    """Return an attribute of the outermost of a predictor and those that it wraps that has it."""
    having = (one for one in layers(predictor) if hasattr(one, name))
    return getattr(next(having, None), name, default)
