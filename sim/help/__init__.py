"""Help: what keys mean, and what was probably meant."""
