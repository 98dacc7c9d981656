"""The consensus' constants, from measured strong-scaling curves.

Printed by scripts/calibrate_consensus.py.
"""

from predictors.consensus_rule import ConsensusRule, RangeModel

RULE = ConsensusRule(
    weights={
        "adept": 1.76,
        "linear": 4.01,
        "quadratic": 2.38,
        "amdahl": 1.31,
        "usl": 1.47,
        "focused": 4.01,
        "between": 2,
    },
    grades={"warning": 0.5, "unusable": 0.25},
    line_rate=0.464,
    steepest=-1.1,
    flattest=0.15,
    typical_exponent=-0.7,
    typical_information=0.03,
)

RANGES = RangeModel(
    base=(0.2379, 0.2131, 0.1767, 0.1515),
    reach=(0, 0.2098, 0.05974, 0.07122),
    disagreement=1.22,
    levels=(
        0.005,
        0.025,
        0.05,
        0.1,
        0.15,
        0.2,
        0.25,
        0.3,
        0.4,
        0.5,
        0.6,
        0.7,
        0.75,
        0.8,
        0.85,
        0.9,
        0.95,
        0.975,
        0.995,
    ),
    quantiles=(
        -2.049,
        -1.329,
        -1.069,
        -0.6963,
        -0.5345,
        -0.3984,
        -0.3037,
        -0.2281,
        -0.09545,
        0.04382,
        0.1996,
        0.4221,
        0.5728,
        0.7316,
        1.032,
        1.292,
        1.841,
        2.833,
        4.602,
    ),
)
