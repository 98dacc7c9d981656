"""What a shape is: the relative runtime g(n), g(1) = 1, of each application; and having none.

And which processor counts an application can run on: any, powers of two, squares, multiples.
"""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from workloads.base import BoolArray, FloatArray, IntArray
from workloads.errors import WorkloadError

_MULTIPLES = re.compile(r"multiples_of_([1-9]\d*)")


def parse_counts(counts: str | Sequence[str], key: str = "counts") -> tuple[str, ...]:
    """Return the names of the count rules that applications draw from.

    They are ``any``, ``powers_of_two``, ``squares``, ``even`` or ``multiples_of_K``; of several,
    each application draws one with equal chances. `key` is that of ``moldability``, for messages.
    """
    names = (counts,) if isinstance(counts, str) else tuple(counts)
    known = ("any", "powers_of_two", "squares", "even")
    for name in names:
        if name not in known and not _MULTIPLES.fullmatch(str(name)):
            raise WorkloadError(
                f"moldability.{key} must be any, powers_of_two, squares, even or "
                f"multiples_of_K, got {name!r}"
            )
    if not names:
        raise WorkloadError(f"moldability.{key} must name at least one rule, got an empty list")
    return names


def allowed_counts(rule: str, processors: int) -> IntArray | None:
    """Return the sorted counts that `rule` allows on a machine; None if all are.

    Examples
    --------
    >>> allowed_counts("squares", 20).tolist(), allowed_counts("multiples_of_8", 20).tolist()
    ([1, 4, 9, 16], [8, 16])
    """
    if rule == "any":
        return None
    if rule == "powers_of_two":
        return 2 ** np.arange(processors.bit_length(), dtype=np.int64)
    if rule == "squares":
        return np.arange(1, math.isqrt(processors) + 1, dtype=np.int64) ** 2
    match = _MULTIPLES.fullmatch(rule)
    step = int(match.group(1)) if match else 2
    return np.arange(step, processors + 1, step, dtype=np.int64)


def is_allowed(rule: str, n: NDArray[np.integer] | NDArray[np.floating]) -> BoolArray:
    """Return which counts `rule` allows on a machine of any size.

    Examples
    --------
    >>> is_allowed("powers_of_two", np.array([1, 2, 3, 64])).tolist()
    [True, True, False, True]
    """
    allowed = allowed_counts(rule, int(np.max(n, initial=1)))
    return np.ones(np.shape(n), bool) if allowed is None else np.isin(n, allowed)


_DRAWS = 8
"""Uniform numbers that every application draws, whatever its family needs."""

_ROUNDING = 1e-12
"""Relative gain below which two counts are equally fast."""


class Curve(Protocol):
    """The formula of a family with the parameters of each application."""

    @property
    def fixed_end(self) -> bool:
        """Whether even a faster count above the largest useful one is no candidate."""
        return False

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return g(n) = T(n)/T(1), elementwise over application indices and counts."""
        ...

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the largest count worth using of each application, at most `processors`."""
        ...

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of T(n) spent communicating, in [0, 1]; NaN where unknown.

        Unless a formula says more it is the share beyond perfect speedup, 1 - E(n), at least 0.
        """
        perfect = 1.0 / (np.asarray(n, float) * self.relative_time(application, n))
        return np.maximum(0.0, 1.0 - perfect)


@runtime_checkable
class ResizableCurve(Protocol):
    """A curve whose parallelism can grow with the problem."""

    def resized(self, application: IntArray, factor: FloatArray) -> Curve:
        """Return curves, one an element, with the parallelism multiplied by `factor`."""
        ...


@dataclass(frozen=True)
class Shapes:
    """The shapes of all applications: formula, limits and feasible counts.

    Attributes
    ----------
    curve : Curve
    processors : int
        Size of the machine.
    rules : tuple of str
        Names of count rules.
    rule : numpy.ndarray of int, shape (applications,)
        Which of `rules` each application obeys.
    known : bool
        Whether other counts than the reference have a runtime at all.
    serial_assumed : numpy.ndarray of bool, shape (applications,), or None
        Whose T(1) lies below every measured count; None for nobody's.
    """

    curve: Curve
    processors: int
    rules: tuple[str, ...]
    rule: IntArray
    known: bool = True
    serial_assumed: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.rule)

    def resized(self, application: IntArray, factor: FloatArray) -> Self:
        """Return shapes with one entry an element: `application` with A times `factor`."""
        assert isinstance(self.curve, ResizableCurve)
        curve = self.curve.resized(application, factor)
        return replace(self, curve=curve, rule=self.rule[application])

    def g(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        return self.curve.relative_time(application, n)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of T(n) that is communication, elementwise; NaN where unknown."""
        return self.curve.communication(application, n)

    def assumed(self, application: IntArray) -> BoolArray:
        """Return whether T(1) lies below every measured count, elementwise."""
        if self.serial_assumed is None:
            return np.zeros(len(application), bool)
        return self.serial_assumed[application]

    def allowed(self, application: int) -> IntArray | None:
        """Return the sorted counts up to the machine's size it can run on; None if all."""
        return self._allowed[self.rule.item(application)]

    @cached_property
    def _allowed(self) -> tuple[IntArray | None, ...]:
        """The counts that each of the rules allows."""
        return tuple(allowed_counts(rule, self.processors) for rule in self.rules)

    def largest_useful(self, application: int) -> int:
        """Return the largest count worth using, at most the machine."""
        return int(self.limits(np.array([application]))[0])

    def limits(self, application: IntArray) -> IntArray:
        """Return the largest useful count of each element.

        Where counts are restricted, it is the allowed count next below the
        unrestricted one, or next above it where that is faster.
        """
        limits = self.curve.largest_useful(application, self.processors)
        for chosen, allowed in self._restrictions(application):
            limits[chosen] = self._restricted(application[chosen], limits[chosen], allowed)
        return limits

    def smallest(self, application: IntArray, least: int) -> IntArray:
        """Return the smallest allowed count of at least `least`, the machine where none is."""
        smallest = np.full(len(application), least, np.int64)
        for chosen, allowed in self._restrictions(application):
            smallest[chosen] = allowed[allowed >= least].min(initial=self.processors)
        return smallest

    def _restrictions(self, application: IntArray) -> Iterator[tuple[BoolArray, IntArray]]:
        """Yield whom a rule binds that leaves counts out, and the counts that it allows."""
        for rule in np.unique(self.rule[application]):
            allowed = self._allowed[rule]
            if allowed is not None:
                yield self.rule[application] == rule, allowed

    def _restricted(self, application: IntArray, limits: IntArray, allowed: IntArray) -> IntArray:
        if not len(allowed):
            return np.ones_like(limits)
        after = np.searchsorted(allowed, limits, side="left")
        above = allowed[np.minimum(after, len(allowed) - 1)]
        exact = above == limits
        below = allowed[np.maximum(np.where(exact, after, after - 1), 0)]
        if self.curve.fixed_end:
            return below
        faster = self.g(application, above) < self.g(application, below) * (1 - _ROUNDING)
        return np.where(faster, above, below)


class ShapeFamily(Protocol):
    """A kind of shape, from which applications are drawn."""

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Draw the shapes of so many applications for a machine of so many processors.

        The shapes of the first applications do not depend on how many follow.
        """
        ...


@runtime_checkable
class ParametricFamily(Protocol):
    """A family of which a model of workloads may bring the parameters of each application."""

    def given(
        self, A: FloatArray, sigma: FloatArray, rng: np.random.Generator, processors: int
    ) -> Shapes:
        """Return the shapes of given parameters, one an application."""
        ...


def draw_uniforms(rng: np.random.Generator, applications: int) -> FloatArray:
    """Return uniform numbers, a row of eight an application; the last is for the count rule."""
    return rng.random((applications, _DRAWS))


def assemble(
    curve: Curve, processors: int, counts: tuple[str, ...], uniforms: FloatArray
) -> Shapes:
    """Return the shapes of a curve, each application with a count rule drawn from `counts`."""
    rule = (uniforms[:, -1] * len(counts)).astype(np.int64)
    return Shapes(curve=curve, processors=processors, rules=counts, rule=rule)


Law = Literal["uniform", "log", "whole"]


def spread(uniform: FloatArray, low: float, high: float, law: Law) -> FloatArray:
    """Map uniform numbers to a law on [low, high]; log-uniform ones are 0 where both ends are."""
    if law == "log":
        ratio = high / low if high > 0.0 else 1.0
        return np.asarray(low * ratio**uniform, float)
    if law == "whole":
        return np.asarray(low + np.floor(uniform * (high - low + 1)), float)
    return np.asarray(low + (high - low) * uniform, float)


@dataclass(frozen=True)
class Range:
    """Where a parameter of a family may lie, whose keys end in ``_min`` and ``_max``.

    Attributes
    ----------
    law : str
        ``uniform``, ``log`` for log-uniform, or ``whole`` for uniform whole numbers.
    least, most : float
        What either end may be; log-uniform, both ends or none are 0.
    above : bool
        Whether both ends must be above `least`.
    """

    law: Law
    least: float = 0.0
    most: float = np.inf
    above: bool = False

    def check(self, key: str, low: float, high: float | None) -> None:
        """Refuse a range that is not within the bounds; no upper end is the machine's size."""
        key = f"moldability.{key}"
        is_low = low <= self.least if self.above else low < self.least
        if is_low or not (low <= self.most and low < np.inf):
            bound = f"{'above' if self.above else 'at least'} {self.least:g}"
            raise WorkloadError(f"{key}_min must be {bound}{self._at_most}, got {low}")
        if not (low <= (np.inf if high is None else high) <= self.most) or high == np.inf:
            bound = f"at least {low:g}{self._at_most} (not below {key}_min)"
            raise WorkloadError(f"{key}_max must be {bound}, got {high}")
        if self.law == "log" and low == 0.0 and high != 0.0:
            raise WorkloadError(f"{key}_min must be above 0 unless {key}_max is 0 too, got 0")

    @property
    def _at_most(self) -> str:
        return "" if np.isinf(self.most) else f" and at most {self.most:g}"


@dataclass(eq=False)
class DrawnFamily(ABC):
    """A family whose curves are made of uniform numbers, eight an application.

    Parameters
    ----------
    counts : str or sequence of str
        Feasible counts: ``any``, ``powers_of_two``, ``squares``, ``even``,
        ``multiples_of_K``, or several to draw from.
    """

    counts: str | Sequence[str] = field(default="any", kw_only=True)
    ranges: ClassVar[Mapping[str, Range]] = {}

    def __post_init__(self) -> None:
        for key, one in self.ranges.items():
            one.check(key, *self._ends(key))
        parse_counts(self.counts)

    def _ends(self, key: str) -> tuple[float, float | None]:
        return getattr(self, f"{key}_min"), getattr(self, f"{key}_max")

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Draw the curve of each application, and its rule of counts."""
        check_draw(applications, processors)
        uniforms = draw_uniforms(rng, applications)
        curve = self.curve(uniforms, processors)
        return assemble(curve, processors, parse_counts(self.counts), uniforms)

    def parameters(self, uniforms: FloatArray, processors: int) -> list[FloatArray]:
        """Return what the first uniform numbers of each application stand for, in its ranges."""
        drawn = []
        for (key, one), column in zip(self.ranges.items(), uniforms.T, strict=False):
            low, high = self._ends(key)
            top = max(processors, low) if high is None else high
            drawn.append(spread(column, low, top, one.law))
        return drawn

    @abstractmethod
    def curve(self, uniforms: FloatArray, processors: int) -> Curve:
        """Return the curves that uniform numbers, a row an application, stand for."""


def check_draw(applications: int, processors: int) -> None:
    """Refuse to draw for no applications or no machine."""
    if applications < 1:
        raise WorkloadError(f"workload.applications must be at least 1, got {applications}")
    if processors < 1:
        raise WorkloadError(f"cluster.processors must be at least 1, got {processors}")


@dataclass(frozen=True)
class UnknownCurve(Curve):
    """A curve of which no point but the recorded one is known."""

    fixed_end: bool = True

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return NaN, even at n = 1."""
        return np.full(np.broadcast(application, n).shape, np.nan)

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return 1: the reference count decides."""
        return np.ones(len(application), np.int64)


class NoMoldability:
    """Keeps every job rigid; T(1), and with it every efficiency, is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> NoMoldability().draw(np.random.default_rng(1), 2, processors=64).known
    False
    """

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Return shapes without curves; nothing is drawn."""
        check_draw(applications, processors)
        rule = np.zeros(applications, np.int64)
        return Shapes(UnknownCurve(), processors, rules=("any",), rule=rule, known=False)
