"""Runtime predictors, on their own and in the loop of the simulator.

A name is imported from its module when it is first asked for, so that a command
that needs one model does not pay for all.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from predictors.adept import Adept as Adept
    from predictors.amdahl import Amdahl as Amdahl
    from predictors.consensus import Consensus as Consensus
    from predictors.cycles import OnlineCyclePredictor as OnlineCyclePredictor
    from predictors.errors import NotFittedError as NotFittedError
    from predictors.errors import PredictorError as PredictorError
    from predictors.errors import UndeterminedError as UndeterminedError
    from predictors.focused import FocusedRegression as FocusedRegression
    from predictors.levenberg import LevenbergMarquardt as LevenbergMarquardt
    from predictors.offline_cycles import OfflineCyclePredictor as OfflineCyclePredictor
    from predictors.rational import RationalPolynomial as RationalPolynomial
    from predictors.regression import LogLogRegression as LogLogRegression
    from predictors.usl import UniversalScalability as UniversalScalability
_MODULES = {
    "Adept": "predictors.adept",
    "Amdahl": "predictors.amdahl",
    "Consensus": "predictors.consensus",
    "FocusedRegression": "predictors.focused",
    "LevenbergMarquardt": "predictors.levenberg",
    "LogLogRegression": "predictors.regression",
    "NotFittedError": "predictors.errors",
    "OfflineCyclePredictor": "predictors.offline_cycles",
    "OnlineCyclePredictor": "predictors.cycles",
    "PredictorError": "predictors.errors",
    "RationalPolynomial": "predictors.rational",
    "UndeterminedError": "predictors.errors",
    "UniversalScalability": "predictors.usl",
}
"""Public name and the module that defines it; the block above tells type checkers the same."""


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module 'predictors' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(_MODULES)
