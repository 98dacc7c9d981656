"""Applications made to run on certain counts, and slower on all others."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from workloads.errors import WorkloadError
from workloads.shapes.base import (
    BoolArray,
    FloatArray,
    IntArray,
    Shapes,
    assemble,
    check_draw,
    check_log_range,
    check_range,
    draw_uniforms,
    log_uniform,
)
from workloads.shapes.counts import is_allowed, parse_counts
from workloads.shapes.irregular import SerialPart


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
        Rules as in `workloads.shapes.counts`.
    """

    s: FloatArray
    slowdown: FloatArray
    family: IntArray
    families: tuple[str, ...]
    fixed_end: bool = False

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


class Special:
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

    def __init__(
        self,
        families: str | Sequence[str] = ("powers_of_two", "squares", "multiples_of_8"),
        slowdown_min: float = 1.2,
        slowdown_max: float = 2.0,
        serial_min: float = 1e-3,
        serial_max: float = 1e-1,
        counts: str | Sequence[str] = "any",
    ) -> None:
        self.families = parse_counts(families, "families")
        if "any" in self.families:
            raise WorkloadError("moldability.families must leave some counts out, got 'any'")
        check_range("slowdown", slowdown_min, slowdown_max, 1.0)
        check_log_range("serial", serial_min, serial_max, 1.0)
        self.slowdown_min, self.slowdown_max = slowdown_min, slowdown_max
        self.serial_min, self.serial_max = serial_min, serial_max
        self.counts = parse_counts(counts)

    def draw(self, rng: np.random.Generator, applications: int, processors: int) -> Shapes:
        """Draw serial fraction, slowdown and family of each application."""
        check_draw(applications, processors)
        uniforms = draw_uniforms(rng, applications)
        s = log_uniform(uniforms[:, 0], self.serial_min, self.serial_max)
        slowdown = self.slowdown_min + (self.slowdown_max - self.slowdown_min) * uniforms[:, 1]
        family = (uniforms[:, 2] * len(self.families)).astype(np.int64)
        curve = SpecialCurve(s, slowdown, family, self.families)
        return assemble(curve, processors, self.counts, uniforms)
