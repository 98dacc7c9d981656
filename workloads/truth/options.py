"""Options of the ground truth, checked: what repeats, and what predictors may see."""

from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any

import numpy as np

from workloads.errors import WorkloadError, check_choice, check_count

TRUTH_KEYS = (
    *("noise", "share", "malleable", "size_exponent", "min_processors", "split_noise"),
    *("requests", "efficiency", "efficiency_spread"),
)
"""Keys of the ``moldability`` group that go to `build_truth`, not to the family of shapes."""


@dataclass(frozen=True)
class TruthOptions:
    """How applications, scales and noise are drawn, and what predictors see of them.

    Attributes
    ----------
    applications : int or "log"
        ``workload.applications``: how many, or ``log`` for the log's own, by
        ``workload.identity``.
    popularity : float
        ``workload.popularity``: exponent of Zipf's law.
    sizes : int or None
        ``workload.sizes``: nominal scales an application has; None where they
        do not repeat.
    size : str
        ``workload.size``: ``known`` or ``hidden``.
    size_noise : float
        ``workload.size_noise``: spread of ln(size) around the nominal scale.
    noise : float
        ``moldability.noise``: spread of ln(runtime) between runs.
    share : float
        ``moldability.share``: fraction of jobs that are moldable.
    malleable : float
        ``moldability.malleable``: fraction of the moldable jobs whose processors
        may also change while they run.
    size_exponent : float
        ``moldability.size_exponent``: A grows as w to this power.
    min_processors : int
        ``moldability.min_processors``: smallest count of a moldable job (its
        reference count where that is smaller).
    split_noise : float
        ``moldability.split_noise``: spread of ln of computation and of
        communication time, each, where the time is split.
    requests : str
        ``moldability.requests``: ``efficiency``, at which users ask for processors, or
        ``independent`` of the curves.
    efficiency, efficiency_spread : float
        ``moldability.efficiency`` and ``moldability.efficiency_spread``: median of
        that efficiency, and spread of ln(E / (1 - E)).

    Raises
    ------
    WorkloadError
        If a value is out of range; the message names its key.

    Examples
    --------
    >>> TruthOptions(sizes=3).sizes
    3
    """

    applications: int | str = 50
    popularity: float = 1.0
    sizes: int | None = None
    size: str = "known"
    size_noise: float = 0.1
    noise: float = 0.02
    share: float = 1.0
    malleable: float = 1.0
    size_exponent: float = 0.0
    min_processors: int = 1
    split_noise: float = 0.05
    requests: str = "efficiency"
    efficiency: float = 0.7
    efficiency_spread: float = 0.75

    def __post_init__(self) -> None:
        if self.applications != "log":
            check_count("workload.applications", self.applications, otherwise=" or log")
        if self.sizes is not None:
            check_count("workload.sizes", self.sizes, otherwise=" or null")
        check_choice("workload.size", self.size, "known", "hidden")
        _check_number("workload.popularity", self.popularity, most=100.0)
        _check_number("workload.size_noise", self.size_noise, most=10.0)
        _check_number("moldability.noise", self.noise, most=10.0)
        _check_number("moldability.split_noise", self.split_noise, most=10.0)
        _check_number("moldability.share", self.share, most=1.0)
        _check_number("moldability.malleable", self.malleable, most=1.0)
        _check_number("moldability.size_exponent", self.size_exponent, below=1.0)
        check_count("moldability.min_processors", self.min_processors)
        check_choice("moldability.requests", self.requests, "efficiency", "independent")
        _check_number("moldability.efficiency", self.efficiency, below=1.0)
        if self.efficiency == 0.0:
            raise WorkloadError("moldability.efficiency=0: must be above 0")
        _check_number("moldability.efficiency_spread", self.efficiency_spread, most=10.0)


def _check_number(key: str, value: Any, most: float = np.inf, below: float = np.inf) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not (isfinite(value) and 0.0 <= value <= most) or value >= below:
        top = f" and at most {most:g}" if np.isfinite(most) else ""
        top += f" and below {below:g}" if np.isfinite(below) else ""
        raise WorkloadError(f"{key}={value}: must be a number of at least 0{top}")
