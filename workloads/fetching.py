"""Fetching a file over HTTP: resumed after a broken transfer, checked, never half-stored."""

import contextlib
import gzip
import hashlib
import http.client
import logging
import os
import re
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from workloads.errors import WorkloadError

_log = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, where known."""

_BLOCK = 1 << 16


class Expected(NamedTuple):
    """What a complete file must be; None for what is not known beforehand."""

    size: int | None = None
    sha256: str | None = None


class _Broken(Exception):
    """A transfer that may go better next time."""


class _Refused(Exception):
    """A transfer that will not."""


def fetch(
    url: str,
    target: Path,
    expected: Expected | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 30.0,
) -> None:
    """Fetch `url` to `target`; the name appears only when the file is whole and checked.

    What has arrived of a broken transfer stays beside it as ``NAME.part`` and is
    taken up again, by this call or a later one. A gzip file is unpacked once to
    check it.

    Raises
    ------
    WorkloadError
        If the file cannot be had; the message says why, in one line.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if not target.exists():
                _fetch(url, target, expected or Expected(), progress, attempts, timeout)
    except OSError as error:
        raise WorkloadError(f"{target}: cannot be stored: {error.strerror or error}") from None


def _fetch(
    url: str,
    target: Path,
    expected: Expected,
    progress: Progress | None,
    attempts: int,
    timeout: float,
) -> None:
    part = target.with_name(target.name + ".part")
    reason = ""
    for attempt in range(1, attempts + 1):
        resumed = part.exists()
        try:
            _transfer(url, part, progress, timeout)
            _check(part, target.name, expected)
        except _Broken as error:
            reason = str(error)
            _log.info("%s: %s (attempt %d of %d)", url, reason, attempt, attempts)
        except _Refused as error:
            part.unlink(missing_ok=True)
            _validator(part).unlink(missing_ok=True)
            reason = str(error)
            if not resumed:
                break  # it came in one piece, so it is what the server has
        else:
            part.replace(target)
            _validator(part).unlink(missing_ok=True)
            return
    raise WorkloadError(f"{url} cannot be fetched: {reason}")


def _transfer(url: str, part: Path, progress: Progress | None, timeout: float) -> None:
    """Append to `part` what it lacks, or begin anew where the server's file changed."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        with contextlib.suppress(FileNotFoundError):
            request.add_header("If-Range", _validator(part).read_text())
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            start, total = _extent(response, have)
            _remember(response, part)
            with part.open("ab" if start else "wb") as stream:
                _copy(response, stream.write, start, total, progress)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            part.unlink()  # longer than the server's file: begin anew
            raise _Broken("the server's file is shorter than what was kept") from None
        refused = error.code < 500 and error.code not in (408, 429)
        problem = f"the server answers {error.code} {error.reason}"
        raise (_Refused(problem) if refused else _Broken(problem)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Broken(_reason(error)) from None


def _extent(response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """Return where the response's bytes begin in the file, and the file's size."""
    length = response.headers.get("Content-Length")
    if response.status != 206:
        return 0, int(length) if length else None
    match = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("Content-Range", ""))
    if not match or int(match[1]) != have:
        raise _Refused("the server answers another part of the file than was asked for")
    return have, int(match[2]) if match[2] != "*" else None


def _copy(
    response: http.client.HTTPResponse,
    write: Callable[[bytes], int],
    start: int,
    total: int | None,
    progress: Progress | None,
) -> None:
    there = start
    while block := response.read(_BLOCK):
        write(block)
        there += len(block)
        if progress:
            progress(there, total)
    if total is not None and there < total:
        raise _Broken(f"the transfer broke off after {there} of {total} bytes")


def _check(part: Path, name: str, expected: Expected) -> None:
    size = part.stat().st_size
    if expected.size is not None and size != expected.size:
        raise _Refused(f"{size} bytes arrived, {expected.size} were expected")
    if expected.sha256 is not None:
        with part.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != expected.sha256:
            raise _Refused(f"its SHA-256 is {found}, {expected.sha256} was expected")
    if name.endswith(".gz"):
        try:
            with gzip.open(part) as stream:
                while stream.read(_BLOCK * 16):
                    pass
        except (OSError, EOFError, zlib.error) as error:
            raise _Refused(f"what arrived is no whole gzip file ({error})") from None


def _remember(response: http.client.HTTPResponse, part: Path) -> None:
    """Keep what identifies the server's file, so that a later part fits this one."""
    tag = response.headers.get("ETag", "")
    mark = tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified")
    if mark:
        _validator(part).write_text(mark)
    else:
        _validator(part).unlink(missing_ok=True)


def _validator(part: Path) -> Path:
    return part.with_name(part.name + ".version")


def _reason(error: BaseException) -> str:
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, http.client.IncompleteRead):
        return f"the transfer broke off after {len(cause.partial)} more bytes"
    return str(cause) or type(cause).__name__


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Let one process at a time fetch a file, where the system has locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with target.with_name(f".{target.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def cache_folder() -> Path:
    """Return where fetched logs are kept: ``MOLDSIM_CACHE``, else the platform's place."""
    if named := os.environ.get("MOLDSIM_CACHE"):
        return Path(named).expanduser()
    if os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif os.uname().sysname == "Darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "moldsim"
