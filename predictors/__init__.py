"""Runtime predictors, on their own and in the loop of the simulator.

A name is imported from its module when it is first asked for, so that a command
that needs one model does not pay for all.
"""

from typing import TYPE_CHECKING

from predictors.lazy import public_names

if TYPE_CHECKING:
    from predictors.adept.model import Adept as Adept
    from predictors.advice import measure_next as measure_next
    from predictors.base import Explanation as Explanation
    from predictors.base import Observation as Observation
    from predictors.base import RuntimePredictor as RuntimePredictor
    from predictors.base import VisibleJobs as VisibleJobs
    from predictors.cli.measurements import read as read
    from predictors.consensus.combination import Consensus as Consensus
    from predictors.curves.laws import Amdahl as Amdahl
    from predictors.curves.laws import LevenbergMarquardt as LevenbergMarquardt
    from predictors.curves.laws import UniversalScalability as UniversalScalability
    from predictors.cycles.offline import OfflineCyclePredictor as OfflineCyclePredictor
    from predictors.cycles.online import OnlineCyclePredictor as OnlineCyclePredictor
    from predictors.errors import NotFittedError as NotFittedError
    from predictors.errors import PredictorError as PredictorError
    from predictors.errors import UndeterminedError as UndeterminedError
    from predictors.regression.barnes import LogLogRegression as LogLogRegression
    from predictors.regression.focal_training import FocalRun as FocalRun
    from predictors.regression.focal_training import train_focal as train_focal
    from predictors.regression.garren import FocusedRegression as FocusedRegression
    from predictors.under_load.rational import RationalPolynomial as RationalPolynomial

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
