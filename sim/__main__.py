"""``python -m sim [overrides]``."""

from sim.app import main

main()
