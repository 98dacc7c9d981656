"""The least-squares core against statsmodels and by hand."""

import numpy as np
import pytest
import statsmodels.api as sm

from predictors.least_squares import LeastSquares, cooks_distance
from predictors.regression.loglog_kernels import DETERMINED, collinear_column, design_factor

pytestmark = pytest.mark.fast


def fit(
    design: np.ndarray, response: np.ndarray, weights: np.ndarray | None = None
) -> LeastSquares:
    """Fit a response on all columns of a design, whose first one is ones."""
    known = np.ascontiguousarray(design[:, 1:].T)
    upper = design_factor(known, response, np.empty(0) if weights is None else weights, False)
    assert collinear_column(upper) == DETERMINED
    return LeastSquares(upper, design.shape[1], len(design))


@pytest.fixture
def problem() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    design = np.column_stack([np.ones(21), rng.uniform(4, 10, 21), rng.uniform(8, 11, 21)])
    return design, design @ [-13.0, -0.95, 2.9] + rng.normal(0, 0.06, 21)


def test_agrees_with_statsmodels(problem: tuple[np.ndarray, np.ndarray]) -> None:
    design, response = problem
    ours, theirs = fit(design, response), sm.OLS(response, design).fit()
    assert ours.coefficients == pytest.approx(theirs.params, rel=1e-9)
    assert ours.rmse == pytest.approx(theirs.mse_resid**0.5, rel=1e-9)
    assert ours.r_squared == pytest.approx(theirs.rsquared, rel=1e-12)
    assert ours.covariance == pytest.approx(theirs.cov_params(), rel=1e-8)
    distance = cooks_distance(ours, design, response)
    assert distance == pytest.approx(theirs.get_influence().cooks_distance[0], rel=1e-8)


def test_prediction_interval_agrees_with_statsmodels(
    problem: tuple[np.ndarray, np.ndarray],
) -> None:
    design, response = problem
    ours = fit(design, response)
    target = np.array([[1.0, 11.0, 10.5], [1.0, 5.0, 9.0]])
    frame = sm.OLS(response, design).fit().get_prediction(target).summary_frame(alpha=0.2)
    reach = ours.quantile(0.8) * ours.deviation(target)
    assert ours.predict(target) - reach == pytest.approx(frame["obs_ci_lower"].to_numpy())
    assert ours.predict(target) + reach == pytest.approx(frame["obs_ci_upper"].to_numpy())


def test_weighted_fit_agrees_with_statsmodels(problem: tuple[np.ndarray, np.ndarray]) -> None:
    design, response = problem
    weights = np.linspace(0.2, 3.0, 21)
    ours = fit(design, response, weights)
    theirs = sm.WLS(response, design, weights=weights / weights.mean()).fit()
    assert ours.coefficients == pytest.approx(theirs.params, rel=1e-9)
    assert ours.rmse == pytest.approx(theirs.mse_resid**0.5, rel=1e-9)
    assert ours.r_squared == pytest.approx(theirs.rsquared, rel=1e-9)


def test_nested_models_share_one_factor(problem: tuple[np.ndarray, np.ndarray]) -> None:
    design, response = problem
    nested = LeastSquares(fit(design, response).upper, 2, 21)
    alone = fit(design[:, :2], response)
    assert nested.coefficients == pytest.approx(alone.coefficients, rel=1e-9)
    assert nested.rmse == pytest.approx(alone.rmse, rel=1e-9)
    assert nested.r_squared == pytest.approx(alone.r_squared, rel=1e-9)


def test_names_the_collinear_column() -> None:
    x = np.arange(1.0, 9.0)
    known = np.array([x, x**2, 3.0 + 2.0 * x])
    assert collinear_column(design_factor(known, x, np.empty(0), False)) == 3


def test_rmse_counts_degrees_of_freedom() -> None:
    design = np.column_stack([np.ones(3), [0.0, 1.0, 2.0]])
    model = fit(design, np.array([0.0, 0.0, 3.0]))
    assert model.squared_error == pytest.approx(1.5)
    assert model.rmse == pytest.approx(1.5**0.5)  # one degree of freedom is left


def test_as_many_rows_as_coefficients_leave_no_rmse() -> None:
    design = np.column_stack([np.ones(2), [0.0, 1.0]])
    model = fit(design, np.array([1.0, 3.0]))
    assert np.isnan(model.rmse)
    assert np.isnan(cooks_distance(model, design, np.array([1.0, 3.0]))).all()
    assert np.isfinite(model.deviation(design)).all()
