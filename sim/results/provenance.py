"""What a run was made of: its configuration, the content of its input files, the code."""

import ast
import contextlib
import functools
import hashlib
import io
import json
import os
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.help.pages import package_spec
from sim.results import durable
from workloads.errors import WorkloadError
from workloads.logs.cache import cache_folder
from workloads.logs.swf import log_file

DIGEST = "config_sha256"
"""Under this key the manifest has the digest of the configuration."""
INPUTS, CODE = "inputs", "code"
PACKAGES = ("sim", "predictors", "workloads")
APART = (
    *("sim/report/", "sim/sweeps/", "sim/oracle/", "sim/library/", "sim/help/", "sim/command/"),
    *("sim/explain/", "sim/plot.py", "sim/app.py", "sim/compare.py", "sim/composition.py"),
    *("sim/console.py", "sim/dataset.py", "sim/study.py", "sim/verify.py", "sim/__init__.py"),
    *("sim/__main__.py", "predictors/cli/", "predictors/__main__.py", "workloads/__main__.py"),
)
"""What compares, sweeps and prints: no result depends on it."""
KEEP = "inputs"
"""What ``reuse`` says where runs of other code are kept."""

Identity = Mapping[str, Any]
"""`DIGEST`, `INPUTS` and `CODE` of a run."""


def spoken(source: str) -> str:
    """Return source without comments, free-standing texts, blank lines and ends of lines.

    Examples
    --------
    >>> lines = ["def f():  # why", "    'What.'", "    return 1"]
    >>> spoken(chr(10).join(lines)).split(chr(10))
    ['def f():', '    return 1']
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        text = node.value if isinstance(node, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.end_lineno:
            rows = range(text.lineno - 1, text.end_lineno)
            if not lines[rows[0]].encode()[: text.col_offset].strip():
                for row in rows:
                    lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


@functools.cache
def code_checksum() -> str:
    """Return the SHA-256 of the code that simulates, whatever its comments say.

    It is kept in the user's cache with the times of the files, as working it out takes a
    second; where there is no cache it is worked out.
    """
    root, sources = Path(__file__).resolve().parents[2], []
    for path in (path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name, state = path.relative_to(root).as_posix(), path.stat()
        if not name.startswith(APART):
            sources.append((name, state.st_size, state.st_mtime_ns))
    sources.sort()
    key = hashlib.sha256(f"{root}\0{sources}".encode()).hexdigest()
    kept = cache_folder() / "code.json"
    known = durable.known_object(kept) or {}
    if isinstance(known.get(key), str):
        return str(known[key])
    found = hashlib.sha256()
    for name, *_ in sources:
        source = (root / name).read_text(encoding="utf-8")
        found.update(f"{name}\0{spoken(source)}\0".encode())
    recent = dict(list(known.items())[-20:])
    with contextlib.suppress(OSError):  # without a cache the next process works it out again
        kept.parent.mkdir(parents=True, exist_ok=True)
        durable.write_whole(kept, json.dumps(recent | {key: found.hexdigest()}))
    return found.hexdigest()


def _texts(tree: object, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the texts in nested mappings by their dotted keys, but for empty ones."""
    if isinstance(tree, Mapping):
        for name, branch in tree.items():
            yield from _texts(branch, f"{key}.{name}" if key else str(name))
    elif isinstance(tree, str) and tree:
        yield key, tree


def foreign_sources(target: str) -> dict[str, Path]:
    """Return the sources of the package that a class of somebody else's is from, by name.

    Nothing of the packages here, whose code is part of a run's identity anyway.
    """
    top = target.partition(".")[0]
    if top in PACKAGES:
        return {}
    spec = package_spec(top)
    if spec is None or not spec.submodule_search_locations:
        origin = None if spec is None else spec.origin
        return {f"{top}.py": Path(origin)} if origin and origin.endswith(".py") else {}
    folders = [Path(place) for place in spec.submodule_search_locations]
    files = [(path, one) for one in folders for path in sorted(one.rglob("*.py"))]
    return {f"{top}/{path.relative_to(one).as_posix()}": path for path, one in files}


def listed_files(key: str, value: str) -> dict[str, Path]:
    """Return the files that a key names by a folder, a pattern or a class, as they are now."""
    from workloads.shapes.measured import find_files

    if key.rpartition(".")[2] == "_target_":
        return {f"{key}/{name}": path for name, path in foreign_sources(value).items()}
    try:
        files = find_files(value)
    except WorkloadError:
        return {}
    common = os.path.commonpath([file.parent for file in files])
    return {f"{key}/{file.relative_to(common).as_posix()}": file for file in files}


def listings(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the keys that name files by a folder, a pattern or a class, and their values."""

    def lists(key: str, value: str) -> bool:
        if key.startswith("moldability.") and key.endswith(".path"):
            return not Path(value).expanduser().is_file()
        return key.rpartition(".")[2] == "_target_"

    return {key: value for key, value in _texts(config) if lists(key, value)}


def input_files(config: Mapping[str, Any]) -> dict[str, Path]:
    """Return the files that a configuration reads, those that are there, by its keys.

    That is what ``path`` keys name: a file, the CSV files of a folder, those of a pattern
    (``KEY/NAME`` each). A log of the archive is the file in its cache, fetched where it is not
    there. What a class of another package is made of counts too.
    """
    found: dict[str, Path] = {}
    for key, value in _texts(config):
        if key.rpartition(".")[2] == "path":
            whole = log_file(value) if key == "workload.path" else Path(value).expanduser()
            if whole.is_file():
                found[key] = whole
    for key, value in listings(config).items():
        found |= listed_files(key, value)
    workload = config["workload"]
    if str(workload.get("_target_")).endswith(".ArchiveWorkload") and workload.get("name"):
        from workloads.logs.archive import fetch_log, terminal_progress

        name, cache, url = (workload.get(key) for key in ("name", "cache", "url"))
        with terminal_progress(f"fetching {name}") as progress:
            found["workload.name"] = fetch_log(name, cache, url, progress)
    return found


def checked_inputs(files: Mapping[str, Path]) -> dict[str, str]:
    """Return the SHA-256 of input files."""
    return {key: durable.sha256(path) for key, path in files.items()}


def identity_of(digest: str, files: Mapping[str, Path]) -> dict[str, Any]:
    """Return what a run by the code as it is is made of: its configuration, its input files."""
    return {DIGEST: digest, INPUTS: checked_inputs(files), CODE: code_checksum()}


def why_again(folder: Path, identity: Identity, *, keep_code: bool) -> str | None:
    """Return why a run must be done, None if it is there as it would be.

    It is empty where there is no finished run. The identity of a configuration that is known to
    be the run's has no `DIGEST`. An input that is not there any more has not changed.
    """
    if not (folder / durable.SUMMARY).exists():
        return ""
    try:
        manifest = durable.read_object(folder / durable.MANIFEST)
    except ValueError as error:
        return str(error)
    if DIGEST in identity and manifest.get(DIGEST) != identity[DIGEST]:
        return "its configuration has changed"
    wrong = durable.damage(folder) or changed_inputs(manifest.get(INPUTS), identity[INPUTS])
    if wrong or keep_code or manifest.get(CODE) == code_checksum():
        return wrong
    return f"the code has changed; reuse={KEEP} keeps such runs"


def changed_inputs(before: object, now: Mapping[str, str]) -> str | None:
    """Return which input has changed, None if none has.

    Examples
    --------
    >>> changed_inputs({"a.path/1.csv": "x", "a.path/2.csv": "y"}, {"a.path/1.csv": "x"})
    'a.path/2.csv is not there any more'
    >>> changed_inputs({"a.path": "x"}, {})
    """
    known = before if isinstance(before, Mapping) else {}
    other = [key for key, checksum in now.items() if known.get(key) != checksum]
    if other:
        return f"{', '.join(other)} is another file than it was"
    listed = {key.partition("/")[0] for key in now if "/" in key}
    gone = [key for key in known if key not in now and key.partition("/")[0] in listed]
    return f"{', '.join(gone)} is not there any more" if gone else None
