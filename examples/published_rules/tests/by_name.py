"""The rules for open counts by name, as the toys of the program's own tests have them."""

import moldable_toys
from moldable_toys import mold, policy, truth_of
from published_rules.batch import Batches
from published_rules.equal_share import AdaptiveEqual, AdaptiveStatic, Available
from published_rules.lazy import LazyEasy
from published_rules.load_efficiency import LoadAdaptive, LoadPredictive
from published_rules.load_interpolated import LoadInterpolated

from sim.policies.allocation.turnaround import BestTurnaround

__all__ = ["POLICIES", "mold", "policy", "truth_of"]
POLICIES = {
    "lazy": ("lazy_slack", BestTurnaround()),
    "asp": ("none", AdaptiveStatic(counts="all")),
    "aep": ("none", AdaptiveEqual(counts="all", cap="knee")),
    "avg": ("none", Available(counts="all", share=1.0)),
    "downey_asp": ("none", Available(counts="all")),
    "a_plus": ("none", LoadInterpolated(counts="all")),
    "a_plus_smoothed": ("conservative", LoadInterpolated(load="smoothed")),
    "scojo": ("easy", LoadAdaptive(counts="all")),
    "scojo_p": ("easy", LoadPredictive(counts="all", tolerance=0.5)),
    "two_phase": ("batches", BestTurnaround(counts="all")),
    "two_shelves": ("shelves", BestTurnaround(counts="all")),
}
moldable_toys.ALL_BACKFILLS |= {
    "batches": Batches(),
    "shelves": Batches("mounie_rapine_trystram"),
    "lazy_easy": LazyEasy(),
    "lazy_slack": LazyEasy(0.3),
}
moldable_toys.POLICIES = POLICIES
moldable_toys.IN_SECONDS = {"a_plus_smoothed", "scojo_p"}
