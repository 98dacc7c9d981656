"""Rational polynomials under background load, after Yagnik et al., and forecasts of load."""
