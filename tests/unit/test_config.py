"""Limits of the closed part of the configuration, and a run's identity."""

import pytest

from sim.config import check_values, digest
from sim.errors import ConfigError

pytestmark = pytest.mark.fast

GOOD = {
    "seed": 1,
    "replications": 1,
    "precision": None,
    "objective": "mean_response_time",
    "objective_of": "run",
    "baseline_predictor": None,
    "most_replications": 100,
    "sensor_noise": 0.05,
    "overrun": "extend",
    "reuse": None,
    "picture": None,
    "menu": None,
    "cluster": {"processors": None},
    "metrics": {"warmup": 0.0, "cooldown": 0.0},
    "sim": {
        "check": False,
        "assumptions": False,
        "progress": None,
        "stall_events": 10,
        "stall_time": None,
    },
}


def test_good_values_pass():
    check_values(GOOD)
    check_values(GOOD | {"seed": 0, "overrun": "kill", "cluster": {"processors": 1}})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seed": -1}, "seed=-1: must be a whole number, at least 0 and at most"),
        (
            {"replications": 0},
            "replications=0: must be a whole number, at least 1 and at most 100,000",
        ),
        ({"precision": 5}, "precision=5: must be a number between 0 and 1, or null"),
        ({"precision": 0.0}, "precision=0.0: must be a number between 0 and 1, or null"),
        ({"objective_of": "gain"}, "objective_of=gain: must be one of run, change"),
        (
            {"most_replications": 0},
            "most_replications=0: must be a whole number, at least 1 and at most 100,000",
        ),
        ({"sensor_noise": -0.1}, "sensor_noise=-0.1: must be a number, at least 0"),
        ({"overrun": "ignore"}, "overrun=ignore: must be one of extend, kill"),
        ({"menu": "squares"}, "menu=squares: must be powers_of_two, all or null"),
        ({"cluster": {"processors": 0}}, "cluster.processors=0: must be a whole number, at least"),
        ({"cluster": {"processors": 10**12}}, "cluster.processors=1000000000000: must be"),
        ({"cluster": {"processors": 2.5}}, "cluster.processors=2.5: must be a whole number"),
        ({"cluster": {"processors": True}}, "cluster.processors=True: must be a whole number"),
    ],
)
def test_values_out_of_range_name_key_value_and_limit(changed, message):
    with pytest.raises(ConfigError) as error:
        check_values(GOOD | changed)
    assert str(error.value).startswith(message)


def test_the_digest_tells_results_apart_and_nothing_else():
    assert digest(GOOD) == digest(dict(reversed(GOOD.items())))
    assert digest(GOOD) == digest(
        GOOD | {"sim": {"check": False, "assumptions": False, "progress": True}}
    )
    assert digest(GOOD) != digest(GOOD | {"seed": 2})
    assert digest(GOOD) != digest(GOOD | {"metrics": {"warmup": 0.1, "cooldown": 0.0}})
