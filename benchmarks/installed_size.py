"""Print what the packages of an environment take on its disk, in MB (2**20 bytes), and why."""

import re
import sys
from importlib.metadata import distributions
from pathlib import Path

FOR = {
    "llvmlite": "LLVM, for numba",
    "pyarrow": "tables of results as Parquet, fast reading of logs",
    "scipy": "fits of curves, distributions of intervals",
    "pandas": "tables of jobs",
    "numpy": "arrays",
    "matplotlib": "figures of runs, reports and advice",
    "numba": "compiled passes over the queue, and fits",
    "pillow": "for matplotlib",
    "fonttools": "for matplotlib",
    "kiwisolver": "for matplotlib",
    "pygments": "for rich",
    "pip": "installs; no run uses it",
    "setuptools": "comes with Python 3.11's environments; no run uses it",
}
SMALL = 5
"""MB below which packages share a row."""


def disk(path: Path) -> int:
    """Return the bytes that a file, or all below a folder, take on the disk, as `du` does."""
    every = [path, *path.rglob("*")] if path.is_dir() and not path.is_symlink() else [path]
    return sum(one.lstat().st_blocks * 512 for one in every)


def sizes(packages: Path) -> dict[str, float]:
    """Return the MB of each package, largest first; its compiled bytes and libraries too."""
    found = {}
    for package in distributions(path=[str(packages)]):
        name = re.sub(r"[-_.]+", "-", package.metadata["Name"]).lower()
        places = {file.parts[0] for file in package.files or ()} - {"..", "__pycache__"}
        found[name] = sum(disk(packages / one) for one in places) / 2**20
    return dict(sorted(found.items(), key=lambda one: -one[1]))


def table(environment: Path) -> list[str]:
    """Return the lines of a table: packages, what they are for, their MB."""
    found = sizes(next(environment.glob("lib/python*/site-packages")))
    large = {name: size for name, size in found.items() if size >= SMALL}
    rows = [(name, FOR.get(name, ""), size) for name, size in large.items()]
    whole = disk(environment) / 2**20
    rows.append((f"{len(found) - len(large)} others", "", whole - sum(large.values())))
    rows.append(("all", "", whole))
    needed = whole - found.get("pip", 0) - found.get("setuptools", 0)
    rows.append(("without pip and setuptools", "", needed))
    head = ["| package | for | MB |", "| --- | --- | ---: |"]
    return head + [f"| {name} | {why} | {size:.0f} |" for name, why, size in rows]


if __name__ == "__main__":
    print(*table(Path(sys.argv[1])), sep="\n")
