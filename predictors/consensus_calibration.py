"""The consensus' constants, from measured strong-scaling curves.

Printed by scripts/calibrate_consensus.py.
"""

from predictors.consensus_rule import ConsensusRule, RangeModel

RULE = ConsensusRule(
    weights={
        "adept": 1.907,
        "linear": 3.073,
        "quadratic": 3.533,
        "amdahl": 1.787,
        "usl": 1.535,
        "focused": 3.073,
        "between": 2,
    },
    grades={"warning": 0.572, "unusable": 0.262},
    line_rate=0.102,
    mean_share=0.302,
    steepest=-1.227,
    flattest=0.265,
    typical_exponent=-0.664,
    typical_information=0.01229,
)

RANGES = RangeModel(
    base=(0.2402, 0.2068, 0.1811, 0.1639),
    reach=(0.03042, 0.2599, 0.1219, 0.08066),
    disagreement=0.9216,
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
        -2.045,
        -1.363,
        -1.103,
        -0.7739,
        -0.5751,
        -0.4376,
        -0.3273,
        -0.247,
        -0.1134,
        0.008924,
        0.1415,
        0.3489,
        0.4724,
        0.6513,
        0.9068,
        1.189,
        1.742,
        2.693,
        4.348,
    ),
)
