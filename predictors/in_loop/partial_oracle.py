"""A partial oracle: the truth for some jobs or counts, to see what errors there cost."""

from collections.abc import Callable, Sequence

import numpy as np

from predictors.base import (
    BoolArray,
    Explanation,
    FloatArray,
    IntArray,
    RuntimePredictor,
    VisibleJobs,
)
from predictors.errors import NotFittedError, PredictorError
from predictors.in_loop.oracle import NeedsTruth, Oracle, TrueRuntimes
from predictors.in_loop.wrapper import Wrapper, provider
from predictors.under_load.load_aware import ExpectedLoad, NeedsLoad, Parts
from predictors.under_load.observed_load import LoadForm

CLASSES = ("narrow_short", "narrow_long", "wide_short", "wide_long")
"""Job classes by requested processors and by runtime on them, as the summaries have them."""


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

    def __init__(
        self,
        before: RuntimePredictor,
        classes: Sequence[str] = CLASSES,
        counts: Sequence[int] = (1, 2**31),
        invert: bool = False,
        narrow: int = 8,
        short: float = 3600.0,
    ) -> None:
        unknown = [name for name in classes if name not in CLASSES]
        if unknown:
            raise PredictorError(f"classes={unknown[0]}: must be one of {', '.join(CLASSES)}")
        if len(counts) != 2 or not 1 <= counts[0] <= counts[1]:
            raise PredictorError(f"counts={list(counts)}: must be the least and the largest count")
        super().__init__(before)
        self.truth: RuntimePredictor = Oracle()
        self.classes = frozenset(classes)
        self.counts = (int(counts[0]), int(counts[1]))
        self.invert = invert
        self.narrow = narrow
        self.short = short
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
