"""Hydra's sweeper for moldsim: what is finished is left out before anything is composed.

Hydra takes sweepers from this namespace alone; what is done lies in `sim.sweeps.resume`.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.config_store import ConfigStore
from omegaconf import OmegaConf


@dataclass
class MoldsimSweeperConf:
    """Settings of the sweeper.

    Attributes
    ----------
    max_batch_size : int or None
        Most runs handed to the launcher at once; None: 500, or what Slurm's
        ``MaxArraySize`` allows, times `runs_per_job`.
    runs_per_job : int
        Runs that share a job of Slurm, which starts Python once for all of them.
    params : dict or None
        Sweep values, as with Hydra's own sweeper.
    """

    _target_: str = "hydra_plugins.moldsim_sweeper.MoldsimSweeper"
    max_batch_size: int | None = None
    runs_per_job: int = 1
    params: dict[str, str] | None = None


ConfigStore.instance().store(
    group="hydra/sweeper", name="moldsim", node=MoldsimSweeperConf, provider="moldsim"
)


class MoldsimSweeper(BasicSweeper):
    """The basic sweeper for many runs: it restarts, splits, and goes on past crashes."""

    def __init__(
        self,
        max_batch_size: int | None = None,
        runs_per_job: int = 1,
        params: dict[str, str] | None = None,
    ) -> None:
        super().__init__(max_batch_size, params)
        self.runs_per_job = runs_per_job

    def sweep(self, arguments: list[str]) -> Any:
        """Run every combination that is not finished yet; return nothing."""
        from sim.app import BAD_STATUS
        from sim.errors import ConfigError
        from sim.sweeps.resume import Sweep, packed, samples_to_validate
        from sim.sweeps.shapes import split

        assert self.config is not None
        assert self.launcher is not None
        assert self.hydra_context is not None
        overrides = [*self._parse_config(), *arguments]
        combinations = split(overrides, self.hydra_context.config_loader)
        self.validate_batch_is_legal(samples_to_validate(combinations))
        folder = Path(self.config.hydra.sweep.dir)
        folder.mkdir(parents=True, exist_ok=True)
        told, kept = OmegaConf.to_yaml(self.config), folder / "multirun.yaml"
        if kept.exists() and kept.read_text(encoding="utf-8") != told:  # of another command
            kept.replace(folder / f"multirun-{len([*folder.glob('multirun*.yaml')])}.yaml")
        kept.write_text(told, encoding="utf-8")
        hydra: Any = OmegaConf.to_container(self.config.hydra, resolve=False)
        shared = self.runs_per_job
        try:
            launch = self._launch(self.launcher if shared == 1 else packed(self.launcher, shared))
        except ConfigError as error:
            sys.stderr.write(f"error: {error}\n")
            raise SystemExit(BAD_STATUS) from None
        Sweep(folder, hydra, combinations, launch, shared).run(self.max_batch_size)
        return []

    def _launch(self, launcher: Any) -> Callable[[Sequence[Sequence[str]], int], None]:
        def launch(batch: Sequence[Sequence[str]], first: int) -> None:
            for result in launcher.launch(batch, initial_job_idx=first):
                _ = result.return_value  # raises what the job raised

        return launch
