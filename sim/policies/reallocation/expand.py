"""Greedy expansion, oldest-first shrinking (after ElastiSim's example; Utrera et al. 2012)."""

from typing import Literal

import numpy as np

from predictors.base import IntArray
from sim.policies.reallocation.base import Reallocation
from sim.policies.reallocation.beliefs import Beliefs
from sim.policies.reallocation.costs import CostModel
from sim.policies.reallocation.moves import hand_out, make_room
from sim.policies.reallocation.sharing import Members, PlainSharing


class GreedyExpansion(Reallocation):
    """Whoever starts takes what is free, then the oldest grow; for a start the oldest shrink.

    Parameters
    ----------
    cost, gain_factor, distance, reclaim
        See `Reallocation`.
    victims : {"oldest", "youngest"}
        Who shrinks first.
    """

    def __init__(
        self,
        cost: CostModel | None = None,
        gain_factor: float = 1.0,
        distance: float = 0.0,
        reclaim: bool = True,
        victims: Literal["oldest", "youngest"] = "oldest",
    ) -> None:
        super().__init__(cost, gain_factor, distance, reclaim)
        if victims not in ("oldest", "youngest"):
            raise ValueError(f"victims must be 'oldest' or 'youngest', got {victims!r}")
        self.victims = victims

    def sharing(self, beliefs: Beliefs) -> "GreedySharing":
        """Return the rule at work in a new run."""
        return GreedySharing(beliefs, self.victims)


class GreedySharing(PlainSharing):
    """Makes room by age, hands out to starters and then by age.

    Parameters
    ----------
    beliefs : Beliefs
    victims : {"oldest", "youngest"}
    """

    def __init__(self, beliefs: Beliefs, victims: str) -> None:
        super().__init__(beliefs)
        self._step = 1 if victims == "oldest" else -1

    def share(self, members: Members, total: int) -> IntArray:
        """Return what each holds, less or more as there is need or room."""
        shares = np.maximum(members.held, members.least)
        running = [k for k, run in enumerate(members.run) if run is not None]
        starting = [k for k, run in enumerate(members.run) if run is None]
        make_room(shares, members.least, total, running[:: self._step])
        hand_out(shares, members.largest, total, [*starting, *running])
        return shares
