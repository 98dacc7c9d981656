"""What a sweep notes of a finished run, by which it is known again without composing it."""

import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sim.help.pages import roots
from sim.results.durable import MANIFEST, checksums, damage, read_object, write_whole
from sim.results.provenance import (
    CODE,
    INPUTS,
    KEEP,
    changed_code,
    changed_inputs,
    checked_inputs,
    listed_files,
)
from sim.results.run_folder import MARK

Combination = Sequence[str]
"""The overrides of a run."""
UNLIKE = ("picture", "reuse", "sim.progress")
"""Keys that may differ between a finished run and one that is asked for."""
LISTED = "listed"
"""Under this key the mark has what names files by a folder, a pattern or a class, and which."""


@functools.cache
def _configuration_hash() -> str:
    found = hashlib.sha256()
    for root in roots():
        for path in sorted(root.rglob("*.yaml")):
            found.update(path.relative_to(root).as_posix().encode() + b"\0")
            found.update(path.read_bytes() + b"\0")
    with contextlib.suppress(PackageNotFoundError):
        found.update(version("moldsim").encode())
    return found.hexdigest()


def fingerprint(overrides: Combination) -> str:
    """Return what identifies a run without composing it: its overrides and all of conf/.

    Parameters
    ----------
    overrides : sequence of str
        Of the run, ``hydra.*`` left out, in any order; those that change no result
        are ignored.
    """
    own = [o for o in overrides if re.split("[=@]", o.lstrip("+~"))[0] not in UNLIKE]
    text = "\0".join([_configuration_hash(), *sorted(own)])
    return hashlib.sha256(text.encode()).hexdigest()


def mark_finished(
    folder: Path,
    overrides: Combination,
    files: Mapping[str, Path] = MappingProxyType({}),
    listed: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Note in a finished run's folder what it was, for `is_marked`.

    Parameters
    ----------
    folder : pathlib.Path
    overrides : sequence of str
    files : mapping of str to pathlib.Path
        Its input files, by the names that the manifest has.
    listed : mapping of str to str
        Keys that name such files by a folder or a pattern, and their values.
    """
    manifest = read_object(folder / MANIFEST)
    known = manifest.get(INPUTS, {})
    path = folder / MARK
    path.parent.mkdir(exist_ok=True)
    made: dict[str, Any] = {INPUTS: {str(path): known.get(name) for name, path in files.items()}}
    mark = {"fingerprint": fingerprint(overrides), "configured": _configured(path.parent)}
    made[LISTED] = {
        key: [value, sorted(str(files[name]) for name in files if name.startswith(f"{key}/"))]
        for key, value in listed.items()
    }
    write_whole(path, json.dumps({**mark, CODE: manifest.get(CODE), **made}))


def _configured(folder: Path) -> dict[str, str]:
    return {name: sha for name, sha in checksums(folder).items() if name.endswith(".yaml")}


def _is_relisted(key: str, value: str, before: Sequence[str]) -> bool:
    """Return whether a folder, a pattern or a class names other files than before."""
    now = sorted(map(str, listed_files(key, value).values()))
    return bool(now) and now != before


def is_marked(folder: Path, overrides: Combination) -> bool:
    """Return whether this very run is finished and whole in a folder, without composing it."""
    try:
        mark = read_object(folder / MARK)
        same = mark.get("configured") == _configured((folder / MARK).parent)
    except (ValueError, OSError):
        return False
    if not same or mark.get("fingerprint") != fingerprint(overrides):
        return False
    inputs = mark.get(INPUTS)
    there = {name: Path(name) for name in inputs} if isinstance(inputs, dict) else {}
    listed = mark.get(LISTED)
    if isinstance(listed, dict) and any(_is_relisted(key, *one) for key, one in listed.items()):
        return False
    now = checked_inputs({name: path for name, path in there.items() if path.is_file()})
    keep_code = any(one.lstrip("+") == f"reuse={KEEP}" for one in overrides)
    code = changed_code(mark.get(CODE), keep_code=keep_code)
    return not (code or changed_inputs(inputs, now) or damage(folder))
