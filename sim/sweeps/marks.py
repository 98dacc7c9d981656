"""What a sweep notes of a finished run, by which it is known again without composing it."""

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sim.help.pages import roots
from sim.help.versions import NAME, installed
from sim.results.artefacts import MARK
from sim.results.durable import known_object, write_whole
from sim.results.provenance import INPUTS, KEEP, checked_inputs, listed_files, listings, why_again
from sim.sweeps.configurations import HOW, key_of

Combination = Sequence[str]
"""The overrides of a run."""
LISTED = "listed"
"""Under this key the mark has what names files by a folder, a pattern or a class."""


@functools.cache
def _configuration_hash() -> str:
    found = hashlib.sha256()
    for root in roots():
        for path in sorted(root.rglob("*.yaml")):
            found.update(path.relative_to(root).as_posix().encode() + b"\0")
            found.update(path.read_bytes() + b"\0")
    found.update((installed(NAME) or "").encode())
    return found.hexdigest()


def fingerprint(overrides: Combination) -> str:
    """Return what identifies a run without composing it: its overrides and all of conf/.

    Parameters
    ----------
    overrides : sequence of str
        Of the run, ``hydra.*`` left out, in any order; those that change no result
        are ignored.
    """
    own = [one for one in overrides if key_of(one) not in HOW]
    text = "\0".join([_configuration_hash(), *sorted(own)])
    return hashlib.sha256(text.encode()).hexdigest()


def mark_finished(
    folder: Path,
    overrides: Combination,
    files: Mapping[str, Path] = MappingProxyType({}),
    config: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Note in a finished run's folder what it was, for `is_marked`.

    Parameters
    ----------
    folder : pathlib.Path
    overrides : sequence of str
    files : mapping of str to pathlib.Path
        Its input files, by the names that the manifest has.
    config : mapping
        Its settings; those of them are noted that name such files by a folder or a pattern.
    """
    path = folder / MARK
    path.parent.mkdir(exist_ok=True)
    plain = {name: str(file) for name, file in files.items() if "/" not in name}
    mark = {"overrides_sha256": fingerprint(overrides), INPUTS: plain, LISTED: listings(config)}
    write_whole(path, json.dumps(mark))


def is_marked(folder: Path, overrides: Combination) -> bool:
    """Return whether this very run is finished and whole in a folder, without composing it."""
    mark = known_object(folder / MARK)
    if mark is None or mark.get("overrides_sha256") != fingerprint(overrides):
        return False
    files = {name: Path(file) for name, file in mark[INPUTS].items() if Path(file).is_file()}
    for key, value in mark[LISTED].items():
        files |= listed_files(key, value)
    keep_code = any(one.lstrip("+") == f"reuse={KEEP}" for one in overrides)
    return why_again(folder, {INPUTS: checked_inputs(files)}, keep_code=keep_code) is None
