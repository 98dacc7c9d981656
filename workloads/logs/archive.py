"""The logs of the Parallel Workloads Archive by name, fetched on first use.

A broken transfer is resumed; what arrives is bounded, checked and never half-stored.

Users of a log are asked to acknowledge whoever provided it, named on its page,
and the archive: Feitelson, Tsafrir & Krakov, "Experience with using the
Parallel Workloads Archive", JPDC 74(10), 2014.
"""

import contextlib
import difflib
import fcntl
import gzip
import hashlib
import http.client
import logging
import os
import re
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from workloads.errors import USUAL, WorkloadError
from workloads.logs.cache import cache_folder

_log = logging.getLogger(__name__)

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and the bytes of the whole, where known."""
BLOCK = 1 << 16
TIMEOUT = 30.0
"""Seconds to wait for the server's next bytes."""


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
    most: int = USUAL.size,
) -> None:
    """Fetch `url` to `target`; the name appears only when the file is whole and checked.

    What has arrived of a broken transfer stays beside it as ``NAME.part`` and is
    taken up again, by this call or a later one. A gzip file is unpacked once to
    check it. Beyond `most` bytes nothing is taken.
    """
    part = target.with_name(target.name + ".part")
    reason = ""
    with _alone(target):
        if target.exists():
            return
        for attempt in range(1, attempts + 1):
            resumed = part.exists()
            try:
                _transfer(url, part, progress, most)
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


@contextlib.contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Let one process at a time store a file, and say so where it cannot be stored."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.with_name(f".{target.name}.lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise WorkloadError(f"{target}: cannot be stored: {error.strerror or error}") from None


def _transfer(url: str, part: Path, progress: Progress | None, most: int) -> None:
    """Append to `part` what it lacks, or begin anew where the server's file changed."""
    have = part.stat().st_size if part.exists() else 0
    headers = {"Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
        with contextlib.suppress(FileNotFoundError):
            headers["If-Range"] = _validator(part).read_text()
    try:
        request = urllib.request.Request(url, headers=headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
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


BASE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload"


class ArchiveLog(NamedTuple):
    """One log of the archive, in the version that the archive recommends.

    Attributes
    ----------
    name : str
        What ``workload.name`` says.
    folder, file : str
        Where it lies below the archive's address.
    """

    name: str
    folder: str
    file: str


LOGS = tuple(
    ArchiveLog(*row)
    for row in (
        ("ANL-Intrepid", "l_anl_int", "ANL-Intrepid-2009-1.swf.gz"),
        ("CEA-Curie", "l_cea_curie", "CEA-Curie-2011-2.1-cln.swf.gz"),
        ("CIEMAT-Euler", "l_ciemat_euler", "CIEMAT-Euler-2008-1.swf.gz"),
        ("CTC-SP2", "l_ctc_sp2", "CTC-SP2-1996-3.1-cln.swf.gz"),
        ("CTC-SP2-1995", "l_ctc_sp2", "CTC-SP2-1995-2.swf.gz"),
        ("DAS2-fs0", "l_das2", "DAS2-fs0-2003-1.swf.gz"),
        ("DAS2-fs1", "l_das2", "DAS2-fs1-2003-1.swf.gz"),
        ("DAS2-fs2", "l_das2", "DAS2-fs2-2003-1.swf.gz"),
        ("DAS2-fs3", "l_das2", "DAS2-fs3-2003-1.swf.gz"),
        ("DAS2-fs4", "l_das2", "DAS2-fs4-2003-1.swf.gz"),
        ("HPC2N", "l_hpc2n", "HPC2N-2002-2.2-cln.swf.gz"),
        ("Intel-NetbatchA", "l_intel_netbatch", "Intel-NetbatchA-2012-1.swf.gz"),
        ("Intel-NetbatchB", "l_intel_netbatch", "Intel-NetbatchB-2012-1.swf.gz"),
        ("Intel-NetbatchC", "l_intel_netbatch", "Intel-NetbatchC-2012-1.swf.gz"),
        ("Intel-NetbatchD", "l_intel_netbatch", "Intel-NetbatchD-2012-1.swf.gz"),
        ("KIT-FH2", "l_kit_fh2", "KIT-FH2-2016-1.swf.gz"),
        ("KTH-SP2", "l_kth_sp2", "KTH-SP2-1996-2.1-cln.swf.gz"),
        ("LANL-CM5", "l_lanl_cm5", "LANL-CM5-1994-4.1-cln.swf.gz"),
        ("LANL-O2K", "l_lanl_o2k", "LANL-O2K-1999-2.swf.gz"),
        ("LCG", "l_lcg", "LCG-2005-1.swf.gz"),
        ("LLNL-Atlas", "l_llnl_atlas", "LLNL-Atlas-2006-2.1-cln.swf.gz"),
        ("LLNL-T3D", "l_llnl_t3d", "LLNL-T3D-1996-2.swf.gz"),
        ("LLNL-Thunder", "l_llnl_thunder", "LLNL-Thunder-2007-1.1-cln.swf.gz"),
        ("LLNL-uBGL", "l_llnl_ubgl", "LLNL-uBGL-2006-2.swf.gz"),
        ("LPC-EGEE", "l_lpc", "LPC-EGEE-2004-1.2-cln.swf.gz"),
        ("MetaCentrum", "l_metacentrum", "METACENTRUM-2009-2.swf.gz"),
        ("MetaCentrum-2013", "l_metacentrum2", "METACENTRUM-2013-3.swf.gz"),
        ("NASA-iPSC", "l_nasa_ipsc", "NASA-iPSC-1993-3.1-cln.swf.gz"),
        ("OSC-Cluster", "l_osc", "OSC-Clust-2000-3.1-cln.swf.gz"),
        ("PIK-IPLEX", "l_pik_iplex", "PIK-IPLEX-2009-1.swf.gz"),
        ("RICC", "l_ricc", "RICC-2010-2.swf.gz"),
        ("Sandia-Ross", "l_sandia_ross", "Sandia-Ross-2001-1.1-cln.swf.gz"),
        ("SDSC-BLUE", "l_sdsc_blue", "SDSC-BLUE-2000-4.2-cln.swf.gz"),
        ("SDSC-DataStar", "l_sdsc_ds", "SDSC-DS-2004-2.1-cln.swf.gz"),
        ("SDSC-Paragon-1995", "l_sdsc_par", "SDSC-Par-1995-3.1-cln.swf.gz"),
        ("SDSC-Paragon-1996", "l_sdsc_par", "SDSC-Par-1996-3.1-cln.swf.gz"),
        ("SDSC-SP2", "l_sdsc_sp2", "SDSC-SP2-1998-4.2-cln.swf.gz"),
        ("SHARCNET", "l_sharcnet", "SHARCNET-2005-2.swf.gz"),
        ("SHARCNET-Whale", "l_sharcnet", "SHARCNET-Whale-2006-2.swf.gz"),
        ("UniLu-Gaia", "l_unilu_gaia", "UniLu-Gaia-2014-2.swf.gz"),
    )
)
"""The archive's logs; cleaned versions where the archive has one."""
KNOWN = {
    "LLNL-Atlas-2006-2.1-cln.swf.gz":
        "8b3aaab739fa0bda8abaccc37c207d0b19d9d147b19e7f47a1641133a56fd07f",
    "NASA-iPSC-1993-3.1-cln.swf.gz":
        "9d997a2c20a7f7b0b6d81638d756ce8b2c524c4f2e9ec78da36001743ca33d76",
    "SDSC-SP2-1998-4.2-cln.swf.gz":
        "2bb635f4b5793f52bd49ccb8fd913d95f9c5be6346925162cadcaf0117e28cf2",
}  # fmt: skip
"""SHA-256 of the text in logs that were at hand; the archive publishes none."""


def find_log(name: str) -> ArchiveLog:
    """Return the log of that name, or of that file name; case does not matter.

    Examples
    --------
    >>> find_log("sdsc-sp2").file
    'SDSC-SP2-1998-4.2-cln.swf.gz'
    """
    wanted = str(name).lower()
    for log in LOGS:
        stem = log.file.lower().removesuffix(".gz")
        if wanted in (log.name.lower(), stem, f"{stem}.gz", stem.removesuffix(".swf")):
            return log
    names = {log.name.lower(): log.name for log in LOGS}
    near = [names[match] for match in difflib.get_close_matches(wanted, names, n=3, cutoff=0.4)]
    raise WorkloadError(
        f"workload.name={name}: the archive has no such log. "
        f"{'Did you mean ' + ' or '.join(near) + '? ' if near else ''}"
        f"There are {', '.join(log.name for log in LOGS)}"
    )


def fetch_log(
    name: str,
    cache: str | os.PathLike[str] | None = None,
    url: str | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    most: int = USUAL.size,
) -> Path:
    """Return the path of a log in the cache, fetching it where it is not there yet.

    Parameters
    ----------
    name : str
        As for `find_log`.
    cache : path-like, optional
        The cache's folder; by default ``MOLDSIM_CACHE``, else the user's cache.
    url : str, optional
        The archive's address; by default ``MOLDSIM_ARCHIVE_URL``, else `BASE_URL`.
    progress : callable, optional
        Called with the bytes that are there and those of the whole file.
    attempts : int
        How often to try.
    most : int
        Bytes that are taken, packed or unpacked.

    Raises
    ------
    WorkloadError
        If the log cannot be had; the message is one line and names its page.
    """
    log = find_log(name)
    folder = cache_folder() / "archive" if cache is None else Path(cache).expanduser()
    target = folder / log.file
    if target.exists():
        return target
    base = (url or os.environ.get("MOLDSIM_ARCHIVE_URL") or BASE_URL).rstrip("/")
    if not re.match("(https?|ftp|file)://.", base):
        raise WorkloadError(
            f"{'workload.url' if url else 'MOLDSIM_ARCHIVE_URL'}={base}: must begin with "
            "https://, http://, ftp:// or file://"
        )
    address = f"{base}/{log.folder}/{log.file}"
    try:
        fetch(address, target, progress, attempts, most)
    except WorkloadError as error:
        raise WorkloadError(
            f"{error}; the log {log.name} is at {BASE_URL}/{log.folder}/index.html: fetch it "
            f"by hand and use workload=swf workload.path=FILE, or put it into {folder}"
        ) from None
    _compare(target, address)
    return target


def _compare(target: Path, address: str) -> None:
    """Warn where a log is another than the one that is known under its name."""
    known = KNOWN.get(target.name)
    if known is None:
        return
    with gzip.open(target) as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != known:
        _log.warning(
            "%s: its text is not the one known under this name (SHA-256 %s, known is %s)",
            address,
            found,
            known,
        )
