"""The consensus in the loop, and what it learns from its methods' errors."""

import numpy as np
import pytest

from predictors.base import Observation, VisibleJobs
from predictors.consensus.combination import Consensus
from predictors.consensus.member_kernels import ERRORS, RUNS
from predictors.in_loop.learned_consensus import ConsensusPerApplication

pytestmark = pytest.mark.fast


def visible(applications: int) -> VisibleJobs:
    zero = np.zeros(applications, np.int64)
    hidden = np.full(applications, np.nan)
    return VisibleJobs(np.arange(applications), zero - 1, hidden, zero, zero + 4, hidden)


def attached(memory: bool = True, applications: int = 2) -> ConsensusPerApplication:
    predictor = ConsensusPerApplication(Consensus(), "consensus", memory=memory, tolerance=0.0)
    predictor.attach(visible(applications))
    return predictor


def measure(predictor: ConsensusPerApplication, application: int, counts: list[int]) -> None:
    """Tell of runs of an application that stops scaling, asking before each."""
    for n in counts:
        predictor.curve(application, np.array([n]))
        predictor.observe(Observation(application, -1, np.nan, n, 100.0 / n + 5.0, 0.0))


def test_each_method_is_compared_with_a_run_before_it_joins() -> None:
    predictor = attached()
    measure(predictor, 0, [1, 2, 4])
    said = Consensus().fit_arrays([1, 2, 4], [105.0, 55.0, 30.0]).member_errors(16, 11.25)
    memory = predictor.errors_
    columns = memory.columns_of(tuple(said))
    before = memory.sums[memory.row_of(0), columns].copy()
    measure(predictor, 0, [16])
    added = memory.sums[memory.row_of(0), columns] - before
    assert added[:, RUNS].tolist() == [1.0] * len(said)
    expected = [min(abs(error), 2.0) for error in said.values()]
    assert added[:, ERRORS] == pytest.approx(expected, abs=1e-12)


def test_past_errors_move_beliefs_of_this_application_and_of_others() -> None:
    remembering, forgetting = attached(), attached(memory=False)
    far = np.array([64])
    for predictor in (remembering, forgetting):
        for counts in ([1, 2, 4, 8, 16, 32, 48], [1, 2, 4]):
            measure(predictor, 0 if len(counts) > 3 else 1, counts)
    for job in (0, 1):
        assert remembering.curve(job, far)[0] != forgetting.curve(job, far)[0]
    alone = attached()
    measure(alone, 1, [1, 2, 4])
    truth = 100.0 / 64 + 5.0
    taught, untaught = remembering.curve(1, far)[0], alone.curve(1, far)[0]
    assert abs(taught - truth) < abs(untaught - truth)


def test_attach_forgets_errors() -> None:
    predictor = attached()
    measure(predictor, 0, [1, 2, 4, 8])
    assert predictor.errors_.multipliers(0)
    predictor.attach(visible(2))
    assert predictor.errors_.multipliers(0) == {}
    assert predictor.curve(0, np.array([4])) is None
