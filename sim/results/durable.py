"""Files that are whole or not there, whether they still are what was written; and output."""

import contextlib
import hashlib
import io
import json
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sim.errors import BAD_INPUT, one_line

if TYPE_CHECKING:
    import pandas as pd

    from predictors.cli.terminal import PlainConsole

MANIFEST = "manifest.json"
SUMMARY = "summary.json"
FAILURE = "failure.json"
LOCK = ".moldsim.lock"
"""Keeps other processes out of a run's folder, and says that a run may write there."""
PARTIAL = ".moldsim-partial"
"""Begins the names of files and folders that are being written; the rest nobody can guess."""
CONFIGURED = "configuration"
"""Under this key the manifest has the SHA-256 of each file that says what was run."""
HYDRA = ".hydra"
"""Folder of these files."""
CHECKSUMS = "artefacts"
"""Under this key the manifest has the SHA-256 of each artefact, and of manifests below it."""
LARGEST_JSON = 2**26
"""Bytes of a summary or manifest that is read."""
PAGE_WIDTH = 120
"""Columns of a table where no terminal says how wide it is."""


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file's content."""
    with path.open("rb", buffering=0) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give the name of a new file that takes a path's place, whole or not at all.

    A link in its place is replaced, not followed; nobody can guess the name.
    """
    made = path.with_name(f"{PARTIAL}-{secrets.token_hex(8)}{path.suffix}")
    try:
        yield made
        with made.open("rb") as stream:
            os.fsync(stream.fileno())
        made.replace(path)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
    sync(path.parent)


def write_whole(path: Path, text: str) -> None:
    """Write a text file as `replaced` says."""
    with replaced(path) as made:
        made.write_text(text, encoding="utf-8", newline="\n")


FORMULA = re.compile(r"\s*[=+\-@]|[\t\r]")
"""Begins a cell that a spreadsheet would work out."""


def plain_cell(value: object) -> object:
    """Return a cell of a table in text, which no spreadsheet takes for a formula.

    Examples
    --------
    >>> plain_cell("=1+1"), plain_cell("-1.5"), plain_cell(-2), plain_cell("a=b")
    ("'=1+1", '-1.5', -2, 'a=b')
    """
    if not isinstance(value, str) or not FORMULA.match(value):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_csv(table: "pd.DataFrame", path: Path) -> None:
    """Write a table as CSV, as `replaced` says; its texts are no formulas."""
    texts = [place for place, kind in enumerate(table.dtypes) if kind.kind not in "biuf"]
    plain = table.set_axis([plain_cell(str(name)) for name in table.columns], axis="columns")
    for place in texts:
        plain.isetitem(place, plain.iloc[:, place].map(plain_cell).to_numpy())
    with replaced(path) as made:
        plain.to_csv(made, index=False, lineterminator="\n")


def clear_partial(folder: Path, kept: Path | None = None) -> None:
    """Remove what was being written in a folder when a process died, but for what goes on."""
    for left in {*folder.glob(f"{PARTIAL}*")} - {kept}:
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left, ignore_errors=True)
        else:
            left.unlink(missing_ok=True)


def real_folder(folder: Path) -> None:
    """Make a folder; a link in its place is removed, so that nothing is written elsewhere."""
    if folder.is_symlink():
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)


def checksums(folder: Path, below: Iterable[Path] = ()) -> dict[str, str]:
    """Return the SHA-256 of a folder's files, and of the manifests of folders below another."""
    own = {path.name: sha256(path) for path in sorted(folder.iterdir()) if path.is_file()}
    inner = {f"{one.name}/{MANIFEST}": sha256(one / MANIFEST) for one in below}
    return own | inner


_OBEYED = re.compile(rb"\\u00(?:0[0-9b-f]|1[0-9a-f]|7f|[89][0-9a-f])", re.IGNORECASE)


def _whole(digits: str) -> float:
    return int(digits) if len(digits) < 19 else float(digits)


def read_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file, its text without characters that a terminal obeys.

    Raises
    ------
    ValueError
        If it holds something else, or cannot be read; the message has no path.
    """
    if not path.is_file():
        raise ValueError(f"{path.name} is missing")
    try:
        with path.open("rb") as stream:
            text = _OBEYED.sub(rb"\\ufffd", stream.read(LARGEST_JSON))
        content = json.loads(text, parse_int=_whole)
    except OSError as error:
        raise ValueError(f"{path.name} cannot be read: {error.strerror}") from None
    except (RecursionError, ValueError):
        raise ValueError(f"{path.name} is damaged: it is not JSON") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path.name} is damaged: it is not a JSON object")  # noqa: TRY004
    return content


def known_object(path: Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, None where it cannot be read."""
    try:
        return read_object(path)
    except ValueError:
        return None


def read_failure(folder: Path) -> str:
    """Return the message of a failed run."""
    try:
        return str(read_object(folder / FAILURE).get("message", ""))
    except ValueError as error:
        return str(error)


def as_json(content: Mapping[str, object]) -> str:
    """Return the text of a summary, a manifest or a failure."""
    return json.dumps(content, indent=2, sort_keys=True, allow_nan=False) + "\n"


def write_failure(folder: Path, message: str) -> None:
    """Mark a run as failed with its message; results of an earlier one stay."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / FAILURE, as_json({"status": "failed", "message": message}))


def damage(folder: Path, *, complete: bool = True) -> str | None:
    """Return what is wrong with a finished run, None if it is what was written.

    A missing file is damage only where the run is to be `complete`. A run without checksums, of
    an older version, is whole if its summary can be read.
    """
    try:
        read_object(folder / SUMMARY)
        manifest = read_object(folder / MANIFEST) if (folder / MANIFEST).exists() else {}
    except ValueError as error:
        return str(error)
    return unlike_manifest(folder, manifest, complete=complete)


def unlike_manifest(
    folder: Path, manifest: Mapping[str, Any], *, complete: bool = True
) -> str | None:
    """Return what of a finished run is not as its manifest says; see `damage`."""
    known, configured = manifest.get(CHECKSUMS, {}), manifest.get(CONFIGURED, {})
    if not isinstance(known, Mapping) or not isinstance(configured, Mapping):
        return f"{MANIFEST} is damaged: {CHECKSUMS} holds no checksums"
    if not known:
        return None if (folder / MANIFEST).exists() or not complete else f"{MANIFEST} is missing"
    written = {**known, **{f"{HYDRA}/{name}": sum_ for name, sum_ in configured.items()}}
    for name, checksum in written.items():
        path = folder / name
        if not path.is_file():
            if complete:
                return f"{name} is missing"
            continue
        try:
            found = sha256(path)
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
        if found != checksum and path.parent.name == HYDRA:
            return f"{name} does not belong to these results: its checksum differs"
        if found != checksum:
            return f"{name} is damaged: its checksum differs"
        if path.name == MANIFEST and (wrong := damage(path.parent, complete=complete)):
            return f"{path.parent.name}/{wrong}"
    return None


@contextlib.contextmanager
def output(kept: str = "") -> Iterator[None]:
    """Print within this: what an encoding lacks is replaced, closed and full outputs are told.

    A reader that has gone away (``| head``) takes nothing else along; the message says what is
    `kept` all the same.

    Raises
    ------
    SystemExit
        With status 1 where the output could not be written.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
    except OSError as error:
        if error.filename is not None:
            raise
        _forget_output()
        sys.stderr.write(f"error: the output cannot be written: {error.strerror}{kept}\n")
        raise SystemExit(1) from None


def table_console() -> "PlainConsole":
    """Return a console as wide as the terminal, also into a pager.

    Without a terminal tables are as wide as a page, and a sentence is a line.
    """
    from predictors.cli.terminal import PlainConsole

    known = sys.stdout.isatty() or sys.stderr.isatty()
    return PlainConsole() if known else PlainConsole(width=PAGE_WIDTH, soft_wrap=True)


def answering(main: Callable[[Any], int]) -> Callable[..., int]:
    """Let a command, a function of its arguments, say in one line what it refuses.

    It returns 2 then. Output that cannot be written is told as `output` says.
    """

    @wraps(main)
    def answered(given: Any = None) -> int:
        status = 0
        with output():
            try:
                status = main(given)
            except BAD_INPUT as error:
                if isinstance(error, OSError) and error.filename is None:  # of the output
                    raise
                sys.stderr.write(f"error: {one_line(error)}\n")
                status = 2
        return status

    return answered


def _forget_output() -> None:
    """Let what is still waiting to be printed go nowhere, or Python tries again at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
