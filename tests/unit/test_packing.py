from types import SimpleNamespace

import pytest

from sim.errors import ConfigError
from sim.sweeps.resume import packed

pytestmark = pytest.mark.fast


class ArrayLauncher:
    """Carries out each job of an array at once, as submitit's launchers do in workers."""

    _EXECUTOR = "local"

    def __init__(self, **params):
        self.params = params
        self.ran = params["ran"]

    def setup(self, *, hydra_context, task_function, config):
        self.hydra_context = hydra_context
        self.task_function = task_function
        self.config = config

    def __call__(self, overrides, key, number, job_id, state):
        self.ran.append((tuple(overrides), key, number))
        return self.task_function(overrides)

    def launch(self, jobs, first):
        self.params["sizes"].append(len(jobs))
        return [self(job, "dir", first + k, "id", {}) for k, job in enumerate(jobs)]


class Result:
    def __init__(self, overrides):
        self.broken = "seed=3" in overrides

    @property
    def return_value(self):
        if self.broken:
            raise MemoryError("no more")
        return None


def launcher(task=lambda overrides: SimpleNamespace(return_value=None)):
    made = ArrayLauncher(ran=[], sizes=[])
    made.setup(hydra_context="context", task_function=task, config="config")
    return made


RUNS = [[f"seed={number}", "policy=easy"] for number in range(1, 8)]


def test_every_run_is_carried_out_once_in_few_jobs():
    plain = launcher()
    packed(plain, 3).launch(RUNS, 6)
    assert plain.params["sizes"] == [3]
    assert [list(overrides) for overrides, _, _ in plain.ran] == RUNS
    numbers = [number for _, _, number in plain.ran]
    assert len(set(numbers)) == len(RUNS)


def test_a_run_that_breaks_is_reported_after_the_others_of_its_job():
    plain = launcher(Result)
    with pytest.raises(MemoryError, match="no more"):
        packed(plain, 7).launch(RUNS, 0)
    assert len(plain.ran) == 7


def test_settings_go_with_it():
    made = packed(launcher(), 2)
    assert (made.hydra_context, made.config) == ("context", "config")


def test_launchers_that_start_python_once_refuse():
    with pytest.raises(ConfigError, match="runs_per_job=4 goes with hydra/launcher=submitit_slurm"):
        packed(SimpleNamespace(), 4)
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        packed(launcher(), 0)
