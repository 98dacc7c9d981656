"""Entry point of ``python -m predictors``."""

import sys

from predictors.cli import main

if __name__ == "__main__":
    sys.exit(main())
