"""The self-generated focal training set, and what re-centring mends."""

import numpy as np
import pandas as pd
import pytest

from predictors.errors import PredictorError
from predictors.regression.focal_training import (
    Experiment,
    FocalRun,
    PlannedRun,
    RunsNeededError,
    client_runs,
    default_levels,
    forecast_sizes,
    off_centre_levels,
    recorded,
    train_focal,
)

FOCAL_TIME = 100.0
LEVELS = (16, 32, 64, 128, 256)


def power_law(nprocs: float, size: float) -> float:
    return 2e-4 * size**1.5 / nprocs**0.9


def like_cg(nprocs: float, size: float) -> float:
    """Return times as CG's: the two client levels mislead about the smaller ones.

    A power law while a processor's share of the data fits its cache, nine times
    slower beyond; 512 processors happen to be 15 % faster, which makes the first
    six runs understate what a processor is worth.
    """
    share = size / nprocs
    fits = (FOCAL_TIME * 128 / 0.02) ** (1 / 1.2) / 128
    missing = 1.0 / (1.0 + (2.0 * fits / share) ** (6.0 / np.log(2.0)))
    seconds = 0.02 * size**1.2 / nprocs * (1.0 + 8.0 * missing)
    return float(seconds * (0.85 if nprocs == 512 else 1.0))


def size_taking(application, nprocs: int, seconds: float) -> float:
    low, high = 1.0, 1e12
    for _ in range(200):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if application(nprocs, middle) < seconds else (low, middle)
    return float(round(low))


def experiment_on(application) -> Experiment:
    return lambda plan: [application(run.nprocs, run.size) for run in plan]


def clients(application) -> tuple[FocalRun, FocalRun]:
    first, second = (
        FocalRun(n, size := size_taking(application, n, FOCAL_TIME), application(n, size))
        for n in (1024, 512)
    )
    return first, second


def test_plans_four_then_fifteen_runs_and_fits_twenty_one() -> None:
    asked: list[list[PlannedRun]] = []

    def experiment(plan):
        asked.append(list(plan))
        return [power_law(run.nprocs, run.size) for run in plan]

    training = train_focal(experiment, *clients(power_law), LEVELS)
    assert [len(batch) for batch in asked] == [4, 15]
    first, second = clients(power_law)
    assert [run.size for run in asked[0]] == [
        np.floor(size * step + 0.5) for size in (first.size, second.size) for step in (1.1, 0.9)
    ]
    assert [run.nprocs for run in asked[1]] == [n for n in LEVELS for _ in range(3)]
    assert len(training.runs) == 21
    assert training.recentred == ()
    assert training.model.coefficients_[1:] == pytest.approx([-0.9, 1.5], rel=1e-6)
    size = float(training.model.solve_size(training.focal_time, 2048))
    assert power_law(2048, size) == pytest.approx(training.focal_time, rel=1e-6)


def test_recentring_mends_a_failure_like_that_of_cg() -> None:
    experiment = experiment_on(like_cg)
    thesis = train_focal(experiment, *clients(like_cg), LEVELS, FOCAL_TIME, recentre=False)
    ours = train_focal(experiment, *clients(like_cg), LEVELS, FOCAL_TIME)
    assert off_centre_levels(thesis.runs, LEVELS, FOCAL_TIME) == LEVELS
    assert ours.recentred == LEVELS
    assert len(ours.runs) == 21

    def misses(training) -> np.ndarray:
        wanted = FOCAL_TIME * np.array([0.8, 0.9, 1.0, 1.1, 1.2])
        sizes = training.model.solve_size(wanted, 2048)
        return np.array([like_cg(2048, s) for s in sizes]) / wanted - 1

    assert np.median(np.abs(misses(thesis))) > 0.4
    assert np.abs(misses(ours)).max() < 0.08
    assert ours.model.rmse_ < 0.25 * thesis.model.rmse_
    assert ours.before.coefficients_ == pytest.approx(thesis.model.coefficients_)


def test_recorded_measurements_name_the_missing_runs_until_there_are_none() -> None:
    first, second = clients(like_cg)
    table = pd.DataFrame([first, second])
    batches = []
    for _ in range(9):
        try:
            training = train_focal(recorded(table), *client_runs(table), LEVELS, FOCAL_TIME)
            break
        except RunsNeededError as needed:
            batches.append(len(needed.runs))
            made = [FocalRun(r.nprocs, r.size, like_cg(r.nprocs, r.size)) for r in needed.runs]
            table = pd.concat([table, pd.DataFrame(made)], ignore_index=True)
    assert batches == [4, 15, 15]
    direct = train_focal(experiment_on(like_cg), first, second, LEVELS, FOCAL_TIME)
    assert training.model.coefficients_ == pytest.approx(direct.model.coefficients_)


def test_missing_runs_are_listed_in_words() -> None:
    table = pd.DataFrame([FocalRun(64, 1000.0, 50.0), FocalRun(32, 700.0, 51.0)])
    with pytest.raises(
        RunsNeededError, match="size 1100 on 64 processors; size 900 on 64"
    ) as caught:
        train_focal(recorded(table), *client_runs(table), (8, 16))
    assert {run.purpose for run in caught.value.runs} == {"around a client run"}


def test_admissible_sizes_are_the_callers() -> None:
    seen: list[float] = []

    def experiment(plan):
        seen.extend(run.size for run in plan)
        return [power_law(run.nprocs, run.size) for run in plan]

    train_focal(
        experiment, *clients(power_law), (64, 128), admissible=lambda s: 60.0 * round(s / 60)
    )
    assert all(size % 60 == 0 for size in seen)


def test_default_levels_halve_below_a_quarter() -> None:
    assert default_levels(1024) == (256, 128, 64, 32, 16)
    assert default_levels(16) == (4, 2, 1)


def test_forecast_sizes_cover_the_thesis_times_with_intervals() -> None:
    training = train_focal(experiment_on(like_cg), *clients(like_cg), LEVELS, FOCAL_TIME)
    table = forecast_sizes(training, 2048)
    assert table["seconds"].tolist() == pytest.approx([80.0, 90.0, 100.0, 110.0, 120.0])
    assert (table["low"] < table["size"]).all()
    assert (table["size"] < table["high"]).all()
    truth = [size_taking(like_cg, 2048, s) for s in table["seconds"]]
    assert (table["low"].to_numpy() < truth).all()
    assert (truth < table["high"].to_numpy()).all()


@pytest.mark.parametrize(
    ("levels", "message"),
    [((16, 600), "levels must lie in 1..511"), ((16, 16), "distinct"), ((), "levels must lie")],
)
def test_bad_levels(levels: tuple[int, ...], message: str) -> None:
    with pytest.raises(PredictorError, match=message):
        train_focal(experiment_on(power_law), *clients(power_law), levels)


def test_bad_experiments_and_clients() -> None:
    first, second = clients(power_law)
    with pytest.raises(PredictorError, match="more processors than the second"):
        train_focal(experiment_on(power_law), second, first, (16,))
    with pytest.raises(PredictorError, match="4 runs were asked for, 1 times came back"):
        train_focal(lambda plan: [1.0], first, second, LEVELS)
    with pytest.raises(PredictorError, match="returned nan s"):
        train_focal(lambda plan: [float("nan")] * len(plan), first, second, LEVELS)
    with pytest.raises(PredictorError, match="two processor counts"):
        client_runs(pd.DataFrame([first]))


def test_errant_runs_among_repeats_are_dropped() -> None:
    runs = pd.DataFrame({"nprocs": 4, "size": 10.0, "runtime": [100.0, 101.0, 700.0]})
    assert recorded(runs)([PlannedRun(4, 10.0, "")]) == [100.5]
