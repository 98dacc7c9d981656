"""Files from the network: resumed after a broken transfer, bounded, checked, never half-stored."""

import contextlib
import fcntl
import gzip
import http.client
import logging
import re
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from workloads.errors import WorkloadError
from workloads.limits import USUAL

_log = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, where known."""
BLOCK = 1 << 16


@contextlib.contextmanager
def terminal_progress(title: str) -> Iterator[Progress | None]:
    """Show a progress bar of bytes on a terminal; yield None where there is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bars(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=None)
        yield lambda there, total: bars.update(task, completed=there, total=total)


class _Broken(Exception):
    """A transfer that may go better next time."""


class _Refused(Exception):
    """A transfer that will not."""


def fetch(
    url: str,
    target: Path,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 30.0,
    most: int = USUAL.size,
) -> None:
    """Fetch `url` to `target`; the name appears only when the file is whole and checked.

    What has arrived of a broken transfer stays beside it as ``NAME.part`` and is
    taken up again, by this call or a later one. A gzip file is unpacked once to
    check it. Beyond `most` bytes nothing is taken.

    Raises
    ------
    WorkloadError
        If the file cannot be had; the message says why, in one line.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target):
            if not target.exists():
                _fetch(url, target, progress, attempts, timeout, most)
    except OSError as error:
        raise WorkloadError(f"{target}: cannot be stored: {error.strerror or error}") from None


def _fetch(
    url: str, target: Path, progress: Progress | None, attempts: int, timeout: float, most: int
) -> None:
    part = target.with_name(target.name + ".part")
    reason = ""
    for attempt in range(1, attempts + 1):
        resumed = part.exists()
        try:
            _transfer(url, part, progress, timeout, most)
            if target.name.endswith(".gz"):
                _check_whole(part, most)
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


def _transfer(url: str, part: Path, progress: Progress | None, timeout: float, most: int) -> None:
    """Append to `part` what it lacks, or begin anew where the server's file changed."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        with contextlib.suppress(FileNotFoundError):
            headers["If-Range"] = _validator(part).read_text()
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=timeout) as response:
            start, total = _extent(response, have)
            _remember(response, part)
            with part.open("ab" if start else "wb") as stream:
                for there in _copy(response, stream, start, total, most):
                    if progress:
                        progress(there, total)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            part.unlink()  # longer than the server's file: begin anew
            raise _Broken("the server's file is shorter than the part fetched before") from None
        refused = error.code < 500 and error.code not in (408, 429)
        problem = f"the server answers {error.code} {error.reason}"
        raise (_Refused(problem) if refused else _Broken(problem)) from None
    except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
        raise _Broken(_reason(error)) from None
    except ValueError as error:
        raise _Refused(f"not a valid address ({error})") from None


def _extent(response: http.client.HTTPResponse, have: int) -> tuple[int, int | None]:
    """Return where the response's bytes begin in the file, and the file's size."""
    length = response.headers.get("Content-Length")
    if response.status != 206:
        return 0, int(length) if length and re.fullmatch(r"\d{1,18}", length) else None
    match = re.fullmatch(
        r"bytes (\d{1,18})-\d+/(\d{1,18}|\*)", response.headers.get("Content-Range", "")
    )
    if not match or int(match[1]) != have:
        raise _Refused("the server sent another part of the file than the one asked for")
    return have, int(match[2]) if match[2] != "*" else None


def _copy(
    response: http.client.HTTPResponse,
    stream: BinaryIO,
    start: int,
    total: int | None,
    most: int,
) -> Iterator[int]:
    """Copy a response and yield how many bytes are there; refuse at once what cannot be right."""
    there = start
    if total is not None and total > most:
        raise _Refused(_too_much(f"{total:,} bytes are announced", most))
    while block := response.read(BLOCK):
        if there == 0 and ".gz." in str(stream.name) and not block.startswith(b"\x1f\x8b"):
            raise _Refused("what arrived is not a gzip file (its first bytes are not those of one)")
        stream.write(block)
        there += len(block)
        if there > most:
            raise _Refused(_too_much("more arrived", most))
        yield there
    if total is not None and there < total:
        raise _Broken(f"the transfer broke off after {there:,} of {total:,} bytes")


def _too_much(what: str, most: int) -> str:
    return f"{what}, at most {most:,} bytes are taken; workload.limits.size=N raises the limit"


def _check_whole(part: Path, most: int) -> None:
    """Refuse what does not unpack as gzip to its end, or to too much."""
    size = 0
    try:
        with gzip.open(part) as stream:
            while block := stream.read(BLOCK * 16):
                size += len(block)
                if size > most:
                    raise _Refused(_too_much("it unpacks to more", most))
    except (OSError, EOFError, zlib.error) as error:
        raise _Refused(f"what arrived is not a complete gzip file ({error})") from None


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
        return f"the transfer broke off after {len(cause.partial):,} more bytes"
    return str(cause) or type(cause).__name__


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Let one process at a time fetch a file."""
    with target.with_name(f".{target.name}.lock").open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
