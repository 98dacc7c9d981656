"""Several runs in each job of a queueing system: Python starts once for all of them."""

from collections.abc import Sequence
from typing import Any

from sim.errors import ConfigError

_APART = "\x1f"
"""Stands between the overrides of a run while a launcher takes them for one."""


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
    if runs < 1:
        raise ConfigError(f"hydra.sweeper.runs_per_job must be at least 1, got {runs}")
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
