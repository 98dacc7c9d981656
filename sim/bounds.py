"""Ranges that keys of a configuration must lie in, refused as such."""

from functools import partial

from predictors import bounds
from sim.errors import ConfigError

AT_LEAST_0 = bounds.AT_LEAST_0._replace(error=ConfigError)
AT_LEAST_1 = bounds.AT_LEAST_1._replace(error=ConfigError)
POSITIVE = bounds.POSITIVE._replace(error=ConfigError)
FINITE = bounds.FINITE._replace(error=ConfigError)
POSITIVE_AND_FINITE = bounds.POSITIVE_AND_FINITE._replace(error=ConfigError)
AT_LEAST_1_AND_FINITE = bounds.AT_LEAST_1_AND_FINITE._replace(error=ConfigError)
SHARE = bounds.SHARE._replace(error=ConfigError)
POSITIVE_SHARE = bounds.POSITIVE_SHARE._replace(error=ConfigError)
BETWEEN_0_AND_1 = bounds.BETWEEN_0_AND_1._replace(error=ConfigError)
check_choice = partial(bounds.check_choice, error=ConfigError)
