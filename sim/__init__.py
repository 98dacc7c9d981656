"""Simulation of adaptive processor allocation on a cluster: `run`, `sweep`, and their parts.

A name is imported from its module when it is first asked for, so that ``import sim`` is light.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sim.engine.run import simulate as simulate
    from sim.engine.setup import Setup as Setup
    from sim.errors import ConfigError as ConfigError
    from sim.errors import PluginError as PluginError
    from sim.errors import PolicyError as PolicyError
    from sim.errors import SimError as SimError
    from sim.errors import StatisticsError as StatisticsError
    from sim.errors import SweepWarning as SweepWarning
    from sim.library.checking import check_plugin as check_plugin
    from sim.library.simulations import Result as Result
    from sim.library.simulations import changes as changes
    from sim.library.simulations import run as run
    from sim.library.simulations import sweep as sweep
    from sim.machine.base import Dedicated as Dedicated
    from sim.policies.allocation.curve import AverageParallelism as AverageParallelism
    from sim.policies.allocation.rigid import Fixed as Fixed
    from sim.policies.allocation.rigid import Request as Request
    from sim.policies.allocation.sa import SmallestTurnaround as SmallestTurnaround
    from sim.policies.backfill.conservative import Conservative as Conservative
    from sim.policies.backfill.easy import Easy as Easy
    from sim.policies.backfill.none import NoBackfill as NoBackfill
    from sim.policies.base import Policy as Policy
    from sim.policies.order import FirstComeFirstServed as FirstComeFirstServed
    from sim.policies.order import LargestFirst as LargestFirst
    from sim.policies.order import LongestFirst as LongestFirst
    from sim.policies.order import ShortestFirst as ShortestFirst
    from sim.policies.order import SmallestFirst as SmallestFirst
    from sim.results.metrics import summarise as summarise
    from sim.results.outcome import outcome as outcome
    from sim.state.view import View as View


def _find_siblings() -> None:
    """Import the packages beside this one, whatever the current folder has by their names.

    Raises
    ------
    ImportError
        If another module of such a name was imported before.
    """
    home = Path(__file__).parents[1]
    sys.path.insert(0, str(home))
    try:
        for name in ("predictors", "workloads", "conf"):
            found = import_module(name).__file__
            if found is None or Path(found).parents[1] != home:
                raise ImportError(f"{found} is in the place of moldsim's package {name}; rename it")
    finally:
        sys.path.remove(str(home))


if sys.argv[:1] == ["-m"]:  # python -m sim and its modules: what is loaded next can be interrupted
    import_module("sim.help.interrupts").watch()
_find_siblings()

from predictors.lazy import public_names  # noqa: E402

__getattr__, __dir__, __all__ = public_names(__name__, __file__)
