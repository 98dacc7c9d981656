"""Oracles on a shared machine: true times on an idle machine, under the load believed to come."""

import numpy as np

from predictors.base import (
    Explanation,
    FloatArray,
    IntArray,
    Observation,
    RuntimePredictor,
    VisibleJobs,
)
from predictors.load_aware import ExpectedLoad, Parts, runtime_under
from predictors.load_observations import LoadForm
from predictors.oracle import NeedsTruth
from predictors.wrapper import Wrapper
from workloads.base import GroundTruth


class OracleUnderLoad:
    """A predictor of times on an idle machine that is told how they split, and the load.

    Parameters
    ----------
    oracle : RuntimePredictor
        Such as `predictors.oracle.Oracle`, bound to the truth.
    truth : GroundTruth
        For the shares of communication.
    """

    load_form: LoadForm = "effective"

    def __init__(self, oracle: RuntimePredictor, truth: GroundTruth) -> None:
        self.learns = oracle.learns
        self._oracle = oracle
        self._truth = truth
        self._expected: ExpectedLoad | None = None

    def bind_load(self, load: ExpectedLoad) -> None:
        """Take the handle on what is believed of the load."""
        self._expected = load

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs."""
        self._oracle.attach(jobs)

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return computation and communication of a job at each count."""
        runtimes = self._oracle.curve(job, counts)
        if runtimes is None:
            return None
        shares = self._truth.communication_shares(np.full(len(counts), job), counts)
        exchange = runtimes * np.nan_to_num(shares)
        return Parts(np.zeros(len(counts)), runtimes - exchange, exchange)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the runtimes under the load believed to come, seconds."""
        parts, expected = self.parts(job, counts), self._expected
        if parts is None or expected is None:
            return self._oracle.curve(job, counts)
        return runtime_under(
            parts, lambda horizon: expected.expected(counts, horizon, self.load_form)
        )

    def observe(self, observation: Observation) -> bool:
        """Pass on a finished run."""
        return self._oracle.observe(observation)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say what the oracle says."""
        return self._oracle.explain(job, nprocs)


def oracles_under_load(predictor: RuntimePredictor, truth: GroundTruth) -> RuntimePredictor:
    """Return a predictor whose oracles, itself or inside it, know what load does to a job."""
    if isinstance(predictor, Wrapper):
        predictor.replace(lambda inside: oracles_under_load(inside, truth))
        return predictor
    return OracleUnderLoad(predictor, truth) if isinstance(predictor, NeedsTruth) else predictor
