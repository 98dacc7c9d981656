"""Log-log regression on processor count and inputs (Barnes et al. 2008)."""

from collections.abc import Sequence
from typing import Literal, Self

from predictors.base import Remark
from predictors.errors import check_choice
from predictors.regression.model_choice import Form, Split, choose_model
from predictors.regression.predictor import LogLogPredictor
from predictors.regression.training_runs import OPTIONAL_INPUT, TrainingRuns
from predictors.regression.validation import choice_remarks, fit_remarks


class LogLogRegression(LogLogPredictor):
    """Predict runtimes by least squares of log2 time on log2 inputs and processors.

    log2 T = Σ β_k·log2 x_k + g(q), g linear or quadratic in log2 q; one model for
    the total time, or one each for computation and communication, by the rules of
    the paper (BARNES sections 2.2, 2.3, 3 and 4.2; `predictors.regression.model_choice`).

    Parameters
    ----------
    inputs : sequence of str
        Names of the input columns; ``size`` is used where the observations have it.
    form : {"auto", "linear", "quadratic"}
        Form of g. Automatic: the lower RMSE over rows minus coefficients, unless
        the held-out largest count clearly prefers the other.
    split : {"auto", "total", "separate"}
        Whether to fit computation and communication apart. Automatic: where
        computation is under 90 % at some count, or communication grows.
    smallest : float or "auto"
        Runs on fewer processors are left out. Automatic: the count from which the largest
        training count is foretold best (`fit` and `fit_arrays`).

    Attributes
    ----------
    coefficients_ : numpy.ndarray
        Intercept, log2 nprocs, inputs in order, (log2 nprocs)² if quadratic.
    rmse_, r_squared_, form_, split_
        The fit's spread in log2 units, R², and the
        chosen form of each part and way of splitting.

    Examples
    --------
    >>> import pandas as pd
    >>> runs = pd.DataFrame({"nprocs": [1, 2, 4, 8], "runtime": [80.0, 40.0, 20.0, 10.0]})
    >>> LogLogRegression().fit(runs).predict([16, 32]).round(3).tolist()
    [5.0, 2.5]
    """

    def __init__(
        self,
        inputs: Sequence[str] = OPTIONAL_INPUT,
        form: Form = "auto",
        split: Split = "auto",
        smallest: float | Literal["auto"] = 1.0,
    ) -> None:
        super().__init__(inputs, smallest)
        self.form, self.split = form, split

    def check_parameters(self) -> None:
        """Refuse arguments that are no choice; see `Estimator`."""
        super().check_parameters()
        check_choice(("auto", "linear", "quadratic"), form=self.form)
        check_choice(("auto", "total", "separate"), split=self.split)

    def fit_runs(self, runs: TrainingRuns) -> Self:
        """Fit to runs that are already checked."""
        self.choice_ = choose_model(runs, self.form, self.split)
        self.runs_ = self._given = runs
        return self

    @property
    def _kind(self) -> tuple[Form, Split]:
        return self.form, self.split

    @property
    def form_(self) -> tuple[str, ...]:
        """Chosen form of each part."""
        return tuple(part.form for part in self.model_.parts)

    @property
    def split_(self) -> str:
        """``total``, ``max`` or ``cp``."""
        return self.choice_.split if self.model_ else ""

    def remarks_on_fit(self) -> list[Remark]:
        """Say of the fit what holds for any target."""
        remarks = fit_remarks(self.runs_, self.model_, self.rmse_) + choice_remarks(self.choice_)
        return remarks + self._superlinear()
