"""Named random streams: every stream derives from one seed by its name."""

import zlib
from dataclasses import dataclass

import numpy as np


@dataclass(eq=False, repr=False)
class Streams:
    """Independent random streams of one replication, one for each purpose.

    A stream depends on the seed, the replication and its own name alone, so a
    new consumer never shifts the numbers that another one sees, and the order
    in which streams are opened does not matter.

    Parameters
    ----------
    seed : int
        The experiment's seed, at least 0.
    replication : int
        Which replication, from 0.

    Examples
    --------
    >>> a = Streams(seed=1)("arrivals").random(2)
    >>> b = Streams(seed=1)("arrivals").random(2)
    >>> bool((a == b).all())
    True
    >>> bool((a == Streams(seed=1)("sizes").random(2)).any())
    False
    """

    seed: int
    replication: int = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value < 0:
                raise ValueError(f"{name} must be at least 0, got {value}")

    def _sequence(self, name: str) -> np.random.SeedSequence:
        key = (self.replication, zlib.crc32(name.encode()))
        return np.random.SeedSequence(self.seed, spawn_key=key)

    def __call__(self, name: str) -> np.random.Generator:
        """Open the stream of that name, from its beginning."""
        return np.random.default_rng(self._sequence(name))

    def key(self, name: str) -> int:
        """Return a 64-bit key of that name, for draws addressed by counter."""
        return int(self._sequence(name).generate_state(1, np.uint64)[0])
