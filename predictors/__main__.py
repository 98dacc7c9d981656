"""Entry point of ``python -m predictors``."""

import sys

from predictors.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
