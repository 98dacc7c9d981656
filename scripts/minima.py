"""Print the oldest versions that pyproject.toml declares, as constraints for pip."""

import re
import tomllib
from pathlib import Path

DECLARED = Path(__file__).resolve().parents[1] / "pyproject.toml"


def minima() -> list[str]:
    """Return a constraint for every package that a run needs."""
    project = tomllib.loads(DECLARED.read_text(encoding="utf-8"))["project"]
    found = (re.fullmatch(r"([\w.-]+)>=([\w.]+).*", one) for one in project["dependencies"])
    return [f"{one[1]}=={one[2]}" for one in found if one]


if __name__ == "__main__":
    print(*minima(), sep="\n")
