"""Predictors that hold a handle on the truth, of all or of some: the yardsticks for all others."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy
from numpy.typing import NDArray

from predictors.base import (
    BoolArray,
    Explanation,
    FloatArray,
    IntArray,
    Observation,
    RuntimePredictor,
    VisibleJobs,
    Wrapper,
    has_curves,
    provider,
)
from predictors.errors import NotFittedError, PredictorError
from predictors.under_load.load_aware import ExpectedLoad, LoadForm, NeedsLoad, Parts

TrueRuntimes = Callable[[int, IntArray], FloatArray]
"""True runtimes in seconds of a job index at each count."""
Shares = Callable[[IntArray, IntArray], FloatArray]
"""The share of its time that each of some jobs communicates at its count; NaN where unknown."""

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB
_LARGEST = 1.0 - 2.0**-53


@runtime_checkable
class NeedsTruth(Protocol):
    """A predictor that asks for the truth; no other ever gets a handle on it."""

    def bind_truth(self, runtimes: TrueRuntimes, key: int) -> None:
        """Take the true runtimes, and a 64-bit key for errors drawn by counter."""


def may_ask_ahead(predictor: RuntimePredictor) -> bool:
    """Say whether a predictor may be asked of jobs to come: it knows all of them, or nothing."""
    return not has_curves(predictor) or provider(predictor, NeedsTruth) is not None


def _mixed(value: Any) -> Any:
    """Return the 64-bit SplitMix finaliser of a Python integer, or of an array of uint64."""
    value = (value ^ (value >> 30)) * _FIRST & _MASK
    value = (value ^ (value >> 27)) * _SECOND & _MASK
    return value ^ (value >> 31)


def _uniform(key: int, job: Any, count: Any) -> Any:
    """Return uniform numbers above 0, by key, job and count; 1 is possible by rounding."""
    state = _mixed((count * _GOLDEN + _mixed((key + _GOLDEN * (job + 1)) & _MASK)) & _MASK)
    return ((state >> 11) + 0.5) * 2.0**-53


def normal_draws(key: int, job: int | NDArray[np.uint64], counts: IntArray) -> FloatArray:
    """Return standard normal numbers addressed by key, job and count.

    The same address always gives the same number, in any order of asking, so
    an error that is drawn this way depends on no schedule. The generator is
    SplitMix64 (Steele, Lea & Flood, OOPSLA 2014), used as a hash.

    Parameters
    ----------
    key : int
        64-bit key of the replication.
    job : int, or numpy.ndarray of numpy.uint64, shape (m,)
        Job index.
    counts : numpy.ndarray of int, shape (m,)

    Returns
    -------
    numpy.ndarray of float, shape (m,)
    """
    uniform = np.minimum(_uniform(key, job, counts.astype(np.uint64)), _LARGEST)
    return np.asarray(scipy.special.ndtri(uniform))


def normal_draw(key: int, job: int, count: int) -> float:
    """Return one of the numbers of `normal_draws`, to the bit.

    Examples
    --------
    >>> normal_draw(7, 3, 16) == normal_draws(7, 3, np.array([16])).item()
    True
    """
    return float(scipy.special.ndtri(min(_uniform(key, job, count), _LARGEST)))


class Oracle:
    """Know every runtime of every job at every count, exactly.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = Oracle()
    >>> oracle.bind_truth(lambda job, counts: 100.0 / counts, key=1)
    >>> oracle.curve(0, np.array([1, 4])).tolist()
    [100.0, 25.0]
    """

    learns = False
    _runtimes: TrueRuntimes | None = None

    def bind_truth(self, runtimes: TrueRuntimes, key: int) -> None:
        """Take the handle on the truth; the key is not needed."""
        self._runtimes = runtimes

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run; what is visible of the jobs adds nothing to the truth."""

    def curve(self, job: int, counts: IntArray) -> FloatArray:
        """Return the true runtimes of job index `job` at each count, seconds.

        Raises
        ------
        NotFittedError
            If the truth was never handed over.
        """
        if self._runtimes is None:
            raise NotFittedError(f"{type(self).__name__}.curve was called before bind_truth")
        return self._runtimes(job, counts)

    def observe(self, observation: Observation) -> bool:
        """Return False: a finished run is no news."""
        return False

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say that the belief is the truth."""
        return Explanation(method="oracle", observations=0, reliability="exact")


@dataclass(eq=False, repr=False)
class NoisyOracle(Oracle):
    """Know every runtime up to a log-normal error, fixed for each job and count.

    The belief is T(n)·bias·exp(spread·z), with z standard normal and drawn for
    each pair of job and count, whatever the schedule: `bias` is the median of
    believed over true runtime.

    Parameters
    ----------
    bias : float
        Median of the error factor, above 0; 1 is unbiased.
    spread : float
        Standard deviation of the logarithm of the factor, between 0 and 10.

    Raises
    ------
    PredictorError
        If `bias` or `spread` is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> noisy = NoisyOracle(bias=2.0, spread=0.0)
    >>> noisy.bind_truth(lambda job, counts: 100.0 / counts, key=1)
    >>> noisy.curve(0, np.array([1, 4])).tolist()
    [200.0, 50.0]
    """

    bias: float = 1.0
    spread: float = 0.2
    _key = 0

    def __post_init__(self) -> None:
        if not 1e-6 <= self.bias <= 1e6:
            raise PredictorError(f"bias must lie between 1e-06 and 1e+06, got {self.bias}")
        if not 0 <= self.spread <= 10:
            raise PredictorError(f"spread must lie between 0 and 10, got {self.spread}")

    def bind_truth(self, runtimes: TrueRuntimes, key: int) -> None:
        """Take the handle on the truth and the key of the errors."""
        super().bind_truth(runtimes, key)
        self._key = key

    def curve(self, job: int, counts: IntArray) -> FloatArray:
        """Return the believed runtimes of job index `job` at each count, seconds."""
        true = super().curve(job, counts)
        draws = normal_draws(self._key, job, counts)
        return np.asarray(np.exp(draws * self.spread) * self.bias * true)

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say that the belief is the truth with an error of known spread."""
        reliability = f"bias {self.bias:g}, spread {self.spread:g}"
        return Explanation(method="noisy_oracle", observations=0, reliability=reliability)


CLASSES = ("narrow_short", "narrow_long", "wide_short", "wide_long")
"""Job classes by requested processors and by runtime on them, as the summaries have them."""


@dataclass(eq=False, repr=False)
class PartialOracle(Wrapper):
    """Believe the truth for some jobs at some counts, and another predictor elsewhere.

    The difference between a run with this predictor and one with the wrapped
    predictor alone is what the errors at those jobs and counts cost. Policies
    treat it as they treat the wrapped one, a learning one with a correction factor; so with
    the truth for all there may still be a difference from the oracle.

    Parameters
    ----------
    before : RuntimePredictor
        Whose beliefs hold elsewhere; it learns as it would alone.
    classes : sequence of str
        Jobs whose beliefs are true: of ``narrow_short``, ``narrow_long``,
        ``wide_short``, ``wide_long``.
    counts : sequence of int
        Least and largest count at which they are true.
    invert : bool
        Whether beliefs are true everywhere but there instead.
    narrow : int
        Most processors of a narrow job's request.
    short : float
        Longest runtime of a short job on its request, seconds.

    Raises
    ------
    PredictorError
        If a class is unknown or the counts are no range.

    Examples
    --------
    >>> import numpy as np
    >>> from predictors.in_loop.oracle import NoisyOracle
    >>> partial = PartialOracle(NoisyOracle(bias=2.0, spread=0.0), counts=[4, 8])
    >>> partial.bind_truth(lambda job, counts: 100.0 / counts, key=1)
    >>> partial.attach(VisibleJobs(*[np.zeros(1, int)] * 2, *[np.ones(1)] * 4))
    >>> partial.curve(0, np.array([2, 4])).tolist()
    [100.0, 25.0]
    """

    classes: Sequence[str] = CLASSES
    counts: Sequence[int] = (1, 2**31)
    invert: bool = False
    narrow: int = 8
    short: float = 3600.0

    def __post_init__(self) -> None:
        unknown = [name for name in self.classes if name not in CLASSES]
        if unknown:
            raise PredictorError(f"classes={unknown[0]}: must be one of {', '.join(CLASSES)}")
        if len(self.counts) != 2 or not 1 <= self.counts[0] <= self.counts[1]:
            told = f"counts={list(self.counts)}"
            raise PredictorError(f"{told}: must be the least and the largest count")
        self.counts = (int(self.counts[0]), int(self.counts[1]))
        self.truth: RuntimePredictor = Oracle()
        self._runtimes: TrueRuntimes | None = None
        self._requested: IntArray = np.zeros(0, np.int64)
        self._chosen: dict[int, bool] = {}

    def bind_truth(self, runtimes: TrueRuntimes, key: int) -> None:
        """Take the truth, and pass it on to a wrapped predictor that holds it too."""
        self._runtimes = runtimes
        for holder in (provider(self.truth, NeedsTruth), provider(self.before, NeedsTruth)):
            if holder is not None:
                holder.bind_truth(runtimes, key)

    def replace(self, change: Callable[[RuntimePredictor], RuntimePredictor]) -> None:
        """Put in the place of the wrapped predictor and of the oracle what `change` makes."""
        super().replace(change)
        self.truth = change(self.truth)

    @property
    def load_form(self) -> LoadForm:
        """Which figure of the load of several processors the parts go with."""
        wrapped = provider(self.before, NeedsLoad)
        return "effective" if wrapped is None else wrapped.load_form

    def bind_load(self, load: ExpectedLoad) -> None:
        """Pass on the handle on what is believed of the load."""
        for asking in (provider(self.truth, NeedsLoad), provider(self.before, NeedsLoad)):
            if asking is not None:
                asking.bind_load(load)

    def attach(self, jobs: VisibleJobs) -> None:
        """Begin a run with these jobs; forget all observations."""
        self._requested = jobs.requested_processors
        self._chosen = {}
        super().attach(jobs)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the believed runtimes of job index `job` at each count, seconds.

        Raises
        ------
        NotFittedError
            If the truth was never handed over.
        """
        if self._runtimes is None:
            raise NotFittedError("PartialOracle.curve was called before bind_truth")
        true = self._is_true(job, counts)
        if true.all():
            return self.truth.curve(job, counts)
        believed = super().curve(job, counts)
        exact = self.truth.curve(job, counts) if true.any() else None
        return believed if believed is None or exact is None else np.where(true, exact, believed)

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return the true parts where beliefs are true, else those of the wrapped predictor."""
        true = self._is_true(job, counts)
        exact = _parts(self.truth, job, counts) if true.any() else None
        if true.all():
            return exact
        believed = _parts(self.before, job, counts)
        if believed is None or exact is None:
            return believed
        return Parts(*(np.where(true, a, b) for a, b in zip(exact, believed, strict=True)))

    def _is_true(self, job: int, counts: IntArray) -> BoolArray:
        low, high = self.counts
        chosen: BoolArray = self._in_class(job) & (counts >= low) & (counts <= high)
        return ~chosen if self.invert else chosen

    def _in_class(self, job: int) -> bool:
        if job not in self._chosen:
            assert self._runtimes is not None
            requested = self._requested[job : job + 1].astype(np.int64)
            width = "narrow" if requested[0] <= self.narrow else "wide"
            length = "short" if self._runtimes(job, requested)[0] <= self.short else "long"
            self._chosen[job] = f"{width}_{length}" in self.classes
        return self._chosen[job]

    def explain(self, job: int, nprocs: int) -> Explanation:
        """Say whether the belief is the truth, else where it comes from."""
        if self._is_true(job, np.array([nprocs]))[0]:
            return Explanation(method="oracle", observations=0, reliability="exact")
        return super().explain(job, nprocs)


def _parts(predictor: RuntimePredictor, job: int, counts: IntArray) -> Parts | None:
    asked = provider(predictor, NeedsLoad)
    return None if asked is None else asked.parts(job, counts)


class OracleUnderLoad(Wrapper):
    """A predictor of times on an idle machine that is told how they split, and the load.

    Parameters
    ----------
    oracle : RuntimePredictor
        Bound to the truth.
    shares : callable
        Returns which share of their time jobs communicate at counts; NaN where unknown.
    """

    load_form: LoadForm = "effective"

    def __init__(self, oracle: RuntimePredictor, shares: Shares) -> None:
        super().__init__(oracle)
        self._shares = shares
        self._expected: ExpectedLoad | None = None

    def bind_load(self, load: ExpectedLoad) -> None:
        """Take the handle on what is believed of the load."""
        self._expected = load

    def parts(self, job: int, counts: IntArray) -> Parts | None:
        """Return computation and communication of a job at each count."""
        runtimes = self.before.curve(job, counts)
        if runtimes is None:
            return None
        exchange = runtimes * np.nan_to_num(self._shares(np.full(len(counts), job), counts))
        return Parts(np.zeros(len(counts)), runtimes - exchange, exchange)

    def curve(self, job: int, counts: IntArray) -> FloatArray | None:
        """Return the runtimes under the load believed to come, seconds."""
        parts, expected = self.parts(job, counts), self._expected
        if parts is None or expected is None:
            return self.before.curve(job, counts)
        return expected.runtimes(counts, parts, self.load_form)


def oracles_under_load(predictor: Any, shares: Shares) -> Any:
    """Return a predictor whose oracles, itself or inside it, know what load does to a job."""
    if isinstance(predictor, Wrapper):
        predictor.replace(lambda inside: oracles_under_load(inside, shares))
        return predictor
    is_oracle = isinstance(predictor, NeedsTruth)
    return OracleUnderLoad(predictor, shares) if is_oracle else predictor
