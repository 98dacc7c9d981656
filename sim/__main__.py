"""``python -m sim [overrides]``."""

import gc

gc.disable()  # what is loaded is no garbage; the run puts it on again
from sim.app import main  # noqa: E402

main()
