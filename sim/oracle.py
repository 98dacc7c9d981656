"""For people who write schedulers: ``python -m sim.oracle write`` and ``check``.

``write`` makes workloads with the schedules that the rules give them; ``check``
says of any schedule which job breaks which rule.
"""

import sys

from sim.schedule_check.command import main

if __name__ == "__main__":
    sys.exit(main())
