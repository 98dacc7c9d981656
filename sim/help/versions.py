"""Which version of the program this is: of an installation, or of a checkout by git."""

import functools
import subprocess
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAME = "moldsim"


@functools.cache
def installed(package: str) -> str | None:
    """Return the version of an installed package, None where there is none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git(*arguments: str) -> str | None:
    """Return what git says of the checkout, None outside of one."""
    if not (ROOT / ".git").exists():
        return None
    asked = ["git", "-C", str(ROOT), *arguments]
    try:
        ended = subprocess.run(asked, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.strip()


@functools.cache
def commit() -> str | None:
    """Return the commit of the checkout that this module lies in, None outside of one."""
    return _git("rev-parse", "HEAD")


@functools.cache
def own_version() -> str | None:
    """Return the program's version: of a checkout with its commit, else of the installation.

    A checkout with changes that are not committed says ``.dirty``.
    """
    described = _git("describe", "--always", "--dirty=.dirty", "--exclude=*", "--abbrev=8")
    project = ROOT / "pyproject.toml"
    if not project.is_file():
        return installed(NAME)
    with project.open("rb") as stream:
        number = str(tomllib.load(stream)["project"]["version"])
    return number if described is None else f"{number}+g{described}"
