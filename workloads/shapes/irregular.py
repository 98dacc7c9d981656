"""Shapes that break the usual models: superlinear steps, favoured counts, times that rise again."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from workloads.base import BoolArray, FloatArray, IntArray
from workloads.errors import WorkloadError
from workloads.shapes.family import Curve, DrawnFamily, Range, is_allowed, parse_counts, spread

_MOST_STEPS = 5


class SerialPart(Curve):
    """What curves with a serial part have alike, whose time falls throughout.

    Attributes
    ----------
    s : numpy.ndarray of float, shape (applications,)
        Serial fraction.
    """

    s: FloatArray

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return the machine: the time falls throughout (1 for a purely serial one)."""
        return np.where(self.s[application] < 1, processors, 1).astype(np.int64)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of the serial part's overhead, s (1 - 1/n), in the time."""
        s = self.s[application]
        overhead = s * (1.0 - 1.0 / np.asarray(n, float))
        return np.asarray(overhead / self.relative_time(application, n), float)


@dataclass(frozen=True)
class StepwiseCurve(SerialPart):
    """T(n) = s + (1 - s)/n · gain^(steps reached), relative to T(1).

    Attributes
    ----------
    s, gain : numpy.ndarray of float, shape (applications,)
        Serial fraction, and the factor on the parallel time at each step.
    steps : numpy.ndarray of float, shape (applications, k)
        Counts, each above 1, from which on one more step is reached.
    """

    s: FloatArray
    gain: FloatArray
    steps: FloatArray

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        n = np.asarray(n, float)
        reached = (n[..., None] >= self.steps[application]).sum(axis=-1)
        parallel = self.gain[application] ** reached / n
        return np.asarray(1.0 - (1.0 - self.s[application]) * (1.0 - parallel), float)


@dataclass(eq=False)
class Stepwise(DrawnFamily):
    """Superlinear steps: from given counts on, the data of a process fit into a faster memory.

    Parameters
    ----------
    at : sequence of int or None
        Counts of the steps, the same for all applications; None draws them.
    steps : int
        How many steps each application draws, log-uniform between 2 and the
        machine; 1 to 5.
    gain_min, gain_max : float
        Range of the factor on the parallel time at each step, uniform, within
        (0, 1]; at a factor below n/(n+1) the speedup is superlinear there.
    serial_min, serial_max : float
        Range of the serial fraction, log-uniform; both 0 for none.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Examples
    --------
    >>> import numpy as np
    >>> family = Stepwise(at=[8], gain_min=0.5, gain_max=0.5, serial_min=0, serial_max=0)
    >>> shapes = family.draw(np.random.default_rng(1), 1, processors=64)
    >>> shapes.g(np.array([0, 0, 0]), np.array([1, 4, 8])).tolist()
    [1.0, 0.25, 0.0625]
    """

    at: Sequence[int] | None = None
    steps: int = 2
    gain_min: float = 0.5
    gain_max: float = 0.9
    serial_min: float = 1e-3
    serial_max: float = 1e-1
    ranges = MappingProxyType(
        {"serial": Range("log", most=1.0), "gain": Range("uniform", 0.0, 1.0, above=True)}
    )

    def __post_init__(self) -> None:
        if self.at is not None and (len(self.at) == 0 or any(count < 2 for count in self.at)):
            raise WorkloadError(
                f"moldability.at must list counts of at least 2, or be null, got {list(self.at)}"
            )
        if not 1 <= self.steps <= _MOST_STEPS:
            raise WorkloadError(f"moldability.steps must be 1 to {_MOST_STEPS}, got {self.steps}")
        super().__post_init__()

    def curve(self, uniforms: FloatArray, processors: int) -> StepwiseCurve:
        """Return serial fraction, gain and steps of each application."""
        s, gain = self.parameters(uniforms, processors)
        if self.at is None:
            drawn = spread(uniforms[:, 2 : 2 + self.steps], 2.0, max(processors, 2), "log")
            steps = np.maximum(np.round(np.sort(drawn, axis=1)), 2.0)
        else:
            steps = np.tile(np.array(self.at, float), (len(uniforms), 1))
        return StepwiseCurve(s, gain, steps)


@dataclass(frozen=True)
class DecliningCurve:
    """T(n) = 1/n + b n^k with its minimum at n = fastest, relative to T(1).

    Attributes
    ----------
    fastest, k : numpy.ndarray of float, shape (applications,)
        Real-valued count of the shortest time, and steepness of the overhead.
    reach : float
        Counts up to `reach` times the fastest one are offered.
    """

    fastest: FloatArray
    k: FloatArray
    reach: float
    fixed_end: bool = True

    def _overhead(self, application: IntArray) -> FloatArray:
        k = self.k[application]
        return np.asarray(1.0 / (k * self.fastest[application] ** (k + 1.0)), float)

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        n, b = np.asarray(n, float), self._overhead(application)
        return np.asarray((1.0 / n + b * n ** self.k[application]) / (1.0 + b), float)

    def largest_useful(self, application: IntArray, processors: int) -> IntArray:
        """Return `reach` times the fastest count, rounded, at least 1, at most the machine."""
        offered = np.round(self.reach * self.fastest[application])
        return np.clip(offered, 1, processors).astype(np.int64)

    def communication(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return the share of b (n^k - 1) in the time."""
        n, b = np.asarray(n, float), self._overhead(application)
        grown = b * n ** self.k[application]
        return np.asarray((grown - b) / (1.0 / n + grown), float)


@dataclass(eq=False)
class Declining(DrawnFamily):
    """U-shaped times: beyond its fastest count an application becomes slower again.

    T(n) is proportional to 1/n + b n^k, b such that the minimum lies at the
    drawn count.

    Parameters
    ----------
    fastest_min, fastest_max : float
        Range of the fastest count, log-uniform; an upper end of None is the machine.
    steepness_min, steepness_max : float
        Range of k, uniform, above 0.
    reach : float
        Counts up to so many times the fastest one are offered to policies, at
        least 1; with 1 none can step into the decline but by its request.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Examples
    --------
    >>> import numpy as np
    >>> family = Declining(fastest_min=16, fastest_max=16)
    >>> shapes = family.draw(np.random.default_rng(1), 1, processors=64)
    >>> g = shapes.g(np.zeros(64, int), np.arange(1, 65))
    >>> int(g.argmin()) + 1, shapes.largest_useful(0)
    (16, 32)
    """

    fastest_min: float = 2.0
    fastest_max: float | None = None
    steepness_min: float = 0.5
    steepness_max: float = 2.0
    reach: float = 2.0
    ranges = MappingProxyType(
        {"fastest": Range("log", 1.0), "steepness": Range("uniform", 0.0, 100.0, above=True)}
    )

    def __post_init__(self) -> None:
        if not (self.reach >= 1.0 and np.isfinite(self.reach)):
            raise WorkloadError(f"moldability.reach must be at least 1, got {self.reach}")
        super().__post_init__()

    def curve(self, uniforms: FloatArray, processors: int) -> DecliningCurve:
        """Return the fastest count and the steepness of each application."""
        fastest, k = self.parameters(uniforms, processors)
        return DecliningCurve(fastest, k, self.reach)


@dataclass(frozen=True)
class SpecialCurve(SerialPart):
    """T(n) = s + (1 - s)/n on the counts of a family, (1 - s)/n times a factor elsewhere.

    Attributes
    ----------
    s, slowdown : numpy.ndarray of float, shape (applications,)
        Serial fraction, and the factor on the parallel time off the family, at least 1.
    family : numpy.ndarray of int, shape (applications,)
        Place of each application's family in `families`.
    families : tuple of str
        Rules as in `workloads.shapes.family`.
    """

    s: FloatArray
    slowdown: FloatArray
    family: IntArray
    families: tuple[str, ...]

    def holds(self, application: IntArray, n: ArrayLike) -> BoolArray:
        """Return whether each count is one that its application is made for; 1 always is."""
        n = np.asarray(n)
        own = np.broadcast_to(self.family[application], n.shape)
        found = n == 1
        for place, rule in enumerate(self.families):
            found = found | ((own == place) & is_allowed(rule, n))
        return np.asarray(found, bool)

    def relative_time(self, application: IntArray, n: ArrayLike) -> FloatArray:
        """Return T(n)/T(1), elementwise."""
        s = self.s[application]
        factor = np.where(self.holds(application, n), 1.0, self.slowdown[application])
        return np.asarray(s + (1.0 - s) * factor / np.asarray(n, float), float)


@dataclass(eq=False)
class Special(DrawnFamily):
    """Specially optimised applications (section VIII.C of the ADEPT paper).

    Each is made for a family of counts, such as powers of two; it runs on all
    counts, but on others its parallel part takes longer.

    Parameters
    ----------
    families : str or sequence of str
        ``powers_of_two``, ``squares``, ``even`` or ``multiples_of_K``; of several,
        each application draws one with equal chances.
    slowdown_min, slowdown_max : float
        Range of the factor on the parallel time at other counts, uniform, at least 1.
    serial_min, serial_max : float
        Range of the serial fraction, log-uniform; both 0 for none.
    counts : str or sequence of str
        Feasible counts, see `Downey`.

    Examples
    --------
    >>> import numpy as np
    >>> family = Special("powers_of_two", 1.5, 1.5, serial_min=0, serial_max=0)
    >>> shapes = family.draw(np.random.default_rng(1), 1, processors=64)
    >>> shapes.g(np.zeros(4, int), np.array([1, 4, 6, 8])).tolist()
    [1.0, 0.25, 0.25, 0.125]
    """

    families: str | Sequence[str] = ("powers_of_two", "squares", "multiples_of_8")
    slowdown_min: float = 1.2
    slowdown_max: float = 2.0
    serial_min: float = 1e-3
    serial_max: float = 1e-1
    ranges = MappingProxyType({"serial": Range("log", most=1.0), "slowdown": Range("uniform", 1.0)})

    def __post_init__(self) -> None:
        if "any" in parse_counts(self.families, "families"):
            raise WorkloadError("moldability.families must leave some counts out, got 'any'")
        super().__post_init__()

    def curve(self, uniforms: FloatArray, processors: int) -> SpecialCurve:
        """Return serial fraction, slowdown and family of each application."""
        s, slowdown = self.parameters(uniforms, processors)
        families = parse_counts(self.families, "families")
        family = (uniforms[:, 2] * len(families)).astype(np.int64)
        return SpecialCurve(s, slowdown, family, families)
