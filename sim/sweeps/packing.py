"""How runs are handed to a launcher: in which order, and several in each job of a queue."""

import math
import re
import subprocess
from collections.abc import Sequence
from typing import Any

from sim.errors import AT_LEAST_1, ConfigError

_APART = "\x1f"
"""Stands between the overrides of a run while a launcher takes them for one."""


BATCH = 500
"""Runs handed to a launcher at once: it keeps their results until all are back."""
SLURM_ARRAY = 1000
"""The same for Slurm where ``scontrol`` does not say; its own default is 1001."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def spread(combinations: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return runs in an order whose beginning is like the whole, and tells how long that takes.

    Combinations next to each other differ in little, and the last key varies fastest: in
    their own order the first runs may all be of the quickest policy.

    Examples
    --------
    >>> [one[0] for one in spread([[str(number)] for number in range(8)])]
    ['0', '5', '2', '7', '4', '1', '6', '3']

    References
    ----------
    The golden ratio's multiples, modulo 1, are spread evenly: Knuth, TAOCP 3, 6.4.
    """
    places = sorted(range(len(combinations)), key=lambda place: place * GOLDEN % 1.0)
    return [combinations[place] for place in places]


def batch_size(launcher: str) -> int:
    """Return how many jobs may be handed to a launcher at once; to Slurm as many as it says."""
    if "slurm" not in launcher.lower():
        return BATCH
    command = ["scontrol", "show", "config"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):  # there is none, or it does not answer
        return SLURM_ARRAY
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", ended.stdout, re.MULTILINE)
    return max(int(limit[1]) - 1, 1) if limit else SLURM_ARRAY


def packed(launcher: Any, runs: int) -> Any:
    """Return a launcher that carries out so many runs in each job, one after the other.

    Parameters
    ----------
    launcher : hydra_plugins.hydra_submitit_launcher.submitit_launcher.BaseSubmititLauncher
        Set up; its settings are those of the whole job.
    runs : int
        At least 1.

    Raises
    ------
    ConfigError
        If the launcher has no jobs of its own to share, or `runs` is less than 1.
    """
    AT_LEAST_1.check(**{"hydra.sweeper.runs_per_job": runs})
    kind = type(launcher)
    if not hasattr(kind, "_EXECUTOR"):
        raise ConfigError(
            f"hydra.sweeper.runs_per_job={runs} goes with hydra/launcher=submitit_slurm and "
            f"submitit_local, whose jobs start Python anew; {kind.__name__} starts it once"
        )

    class Packed(kind):  # type: ignore[misc, valid-type]
        """Takes a whole run for one override, and a list of runs for a job."""

        def __call__(
            self, sweep_overrides: Sequence[str], key: str, number: int, *rest: Any
        ) -> list[Any]:
            results = [
                super(Packed, self).__call__(run.split(_APART), key, number * runs + place, *rest)
                for place, run in enumerate(sweep_overrides)
            ]
            for result in results:
                _ = result.return_value  # raises what the run raised
            return []

        def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
            joined = [_APART.join(overrides) for overrides in job_overrides]
            jobs = [joined[first : first + runs] for first in range(0, len(joined), runs)]
            super().launch(jobs, initial_job_idx)
            return []

    copy = Packed(**launcher.params)
    copy.setup(
        hydra_context=launcher.hydra_context,
        task_function=launcher.task_function,
        config=launcher.config,
    )
    return copy
