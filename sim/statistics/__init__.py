"""How sure a result is: intervals, paired comparisons, many comparisons, precision, regret."""
