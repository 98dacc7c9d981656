"""Say, once, that a command which ran before now means something else.

The same command line in a folder that remembers what it was composed to: whatever
differs in the composed configuration is a default that has changed since.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from sim.configurations import Setting, flatten

HYDRA = ".hydra"
LATEST = 50
"""Earlier runs in folders named by date and time that are looked through."""
LISTED = 6
"""Changed defaults that the line lists."""
ADVICE = "experiment=as_before restores former values, CHANGELOG.md says why they changed"

Remembered = tuple[list[str], Setting]
"""Overrides of an earlier run, and every value of its configuration."""


def remembered(run: Path) -> Remembered | None:
    """Return what a run's folder remembers of its command; None if nothing readable."""
    found = []
    for name in ("overrides.yaml", "config.yaml"):
        try:
            text = (run / HYDRA / name).read_text(encoding="utf-8")
            found.append(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
        except (OSError, yaml.YAMLError):
            return None
    overrides, config = found
    return [str(one) for one in overrides or []], flatten(config or {})


def earlier(folder: Path, overrides: Sequence[str], dated: bool) -> Setting | None:
    """Return the configuration of this very command when it last ran.

    Parameters
    ----------
    folder : pathlib.Path
        Where the run is about to write.
    overrides : sequence of str
        The command, in any order.
    dated : bool
        Whether folders are named by date and time, so that an earlier one is
        another; the latest `LATEST` are looked through.
    """
    places: Iterable[Path] = [folder]
    if dated:
        files = sorted(folder.parents[1].glob(f"*/*/{HYDRA}/overrides.yaml"), reverse=True)
        places = [path.parents[1] for path in files[:LATEST]]
    for place in places:
        found = remembered(place)
        if found is not None and sorted(found[0]) == sorted(overrides):
            return found[1]
    return None


def changed(before: Mapping[str, object], now: Mapping[str, object]) -> dict[str, tuple[str, str]]:
    """Return the keys that both have with the values that differ.

    Examples
    --------
    >>> changed({"a.charge": False, "b": 1, "old": 2}, {"a.charge": True, "b": 1, "new": 3})
    {'a.charge': ('false', 'true')}
    """
    return {
        key: (_shown(before[key]), _shown(now[key]))
        for key in sorted(before.keys() & now.keys())
        if before[key] != now[key]
    }


def _shown(value: object) -> str:
    return {None: "null", True: "true", False: "false"}.get(value, str(value))  # type: ignore[call-overload,no-any-return]


def line(found: Mapping[str, tuple[str, str]]) -> str:
    """Return the line that says so.

    Examples
    --------
    >>> line({"predictor.charge": ("false", "true")}).partition(";")[0]
    'defaults have changed since this command last ran: predictor.charge false -> true'
    """
    parts = [f"{key} {old} -> {new}" for key, (old, new) in found.items()]
    more = f" and {len(parts) - LISTED} more" if len(parts) > LISTED else ""
    said = ", ".join(parts[:LISTED])
    return f"defaults have changed since this command last ran: {said}{more}; {ADVICE}"
