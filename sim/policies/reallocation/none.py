"""No reallocation: malleable jobs keep the processors they start on."""

from sim.policies.base import Allocation, Backfill, Scheduler
from sim.policies.order import Order
from sim.view import View


class NoReallocation:
    """Every job keeps what the allocation rule gave it."""

    reallocates = False

    def begin(
        self, view: View, order: Order, backfill: Backfill, allocation: Allocation
    ) -> Scheduler:
        """Begin a run without reallocation."""
        return backfill.begin(view, order, allocation)
