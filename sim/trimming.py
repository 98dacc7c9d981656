"""Which jobs count in a steady state: warm-up and cool-down."""

from dataclasses import dataclass

from sim.errors import ConfigError


def _count(value: float, jobs: int) -> int:
    return int(value) if float(value).is_integer() else int(value * jobs)


@dataclass(frozen=True)
class Trim:
    """How many of the first and last submitted jobs the ``steady_*`` figures leave out.

    Jobs are left out in submit order. Figures of the machine and the queue run
    over the time from the first to the last submit of the jobs that stay, so
    that neither the filling nor the draining of the machine counts.

    Parameters
    ----------
    warmup, cooldown : int or float
        A number of jobs (0, 1, 2, ...) or a fraction of the jobs between 0 and 1.

    Raises
    ------
    ConfigError
        If a value is negative, or is neither whole nor below 1.

    Examples
    --------
    >>> Trim(warmup=0.25, cooldown=1).window(8)
    slice(2, 7, None)
    """

    warmup: float = 0
    cooldown: float = 0

    def __post_init__(self) -> None:
        for key in ("warmup", "cooldown"):
            value = getattr(self, key)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not (0 <= value < 1 or (value >= 1 and float(value).is_integer())):
                raise ConfigError(
                    f"metrics.{key} must be a number of jobs (0, 1, 2, ...) or a fraction of "
                    f"them (0 <= fraction < 1), got {value!r}"
                )

    @property
    def trims(self) -> bool:
        """Whether any job is left out."""
        return self.warmup > 0 or self.cooldown > 0

    def window(self, jobs: int) -> slice:
        """Return the slice, in submit order, of the jobs that stay.

        Raises
        ------
        ConfigError
            If fewer than two jobs would stay.
        """
        first, last = _count(self.warmup, jobs), jobs - _count(self.cooldown, jobs)
        if last - first < 2:
            raise ConfigError(
                f"metrics.warmup={self.warmup} and metrics.cooldown={self.cooldown} leave "
                f"{max(last - first, 0)} of {jobs} jobs; at least 2 must stay"
            )
        return slice(first, last)
