"""The consensus' constants, from measured strong-scaling curves."""

from predictors.consensus_rule import ConsensusRule, RangeModel

RULE = ConsensusRule(
    weights={
        "adept": 2.0,
        "linear": 4.0,
        "quadratic": 2.0,
        "amdahl": 1.0,
        "usl": 2.0,
        "focused": 4.0,
        "between": 2.0,
    },
    grades={"warning": 0.5, "unusable": 0.25},
    line_rate=0.3,
    steepest=-1.1,
    flattest=0.15,
    typical_exponent=-0.7,
    typical_information=0.03,
)

RANGES = RangeModel(
    base=(0.05, 0.05, 0.05, 0.05),
    reach=(0.3, 0.3, 0.3, 0.3),
    disagreement=0.5,
    levels=(0.0, 0.1, 0.5, 0.9, 1.0),
    quantiles=(-3.0, -1.3, 0.0, 1.3, 3.0),
)
