"""The logs of the Parallel Workloads Archive by name, fetched on first use.

Users of a log are asked to acknowledge whoever provided it, named on its page,
and the archive: Feitelson, Tsafrir & Krakov, "Experience with using the
Parallel Workloads Archive", JPDC 74(10), 2014.
"""

import difflib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from workloads.base import Trace
from workloads.errors import WorkloadError
from workloads.fetching import Expected, Progress, cache_folder, fetch
from workloads.identity import Identity
from workloads.logs import LogReplay
from workloads.streams import Streams
from workloads.swf import read_swf

BASE_URL = "https://www.cs.huji.ac.il/labs/parallel/workload"


class ArchiveLog(NamedTuple):
    """One log of the archive, in the version that the archive recommends.

    Attributes
    ----------
    name : str
        What ``workload.name`` says.
    folder, file : str
        Where it lies below the archive's address.
    expected : Expected
        What is known of the whole file.
    """

    name: str
    folder: str
    file: str
    expected: Expected = Expected()


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


def find_log(name: str) -> ArchiveLog:
    """Return the log of that name, or of that file name; case does not matter.

    Raises
    ------
    WorkloadError
        If there is none; the message names the closest ones.

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
        f"workload.name={name}: the archive has no such log; "
        f"{'did you mean ' + ' or '.join(near) + '? ' if near else ''}"
        f"There are {', '.join(log.name for log in LOGS)}"
    )


def fetch_log(
    name: str,
    cache: str | os.PathLike[str] | None = None,
    url: str | None = None,
    progress: Progress | None = None,
    attempts: int = 3,
    timeout: float = 30.0,
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
    attempts, timeout
        How often to try, and how many seconds to wait for the server's next bytes.

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
    try:
        fetch(f"{base}/{log.folder}/{log.file}", target, log.expected, progress, attempts, timeout)
    except WorkloadError as error:
        raise WorkloadError(
            f"{error}; the log {log.name} lives at {BASE_URL}/{log.folder}/index.html: fetch it "
            f"by hand and use workload=swf workload.path=FILE, or put it into {folder}"
        ) from None
    return target


@contextmanager
def terminal_progress(title: str) -> Iterator[Progress | None]:
    """Show a progress bar of bytes on a terminal; yield None where there is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Bars(*columns, TransferSpeedColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=None)
        yield lambda there, total: bars.update(task, completed=there, total=total)


class ArchiveWorkload:
    """Jobs from a log of the Parallel Workloads Archive.

    Parameters
    ----------
    name : str
        One of `LOGS`, such as ``SDSC-SP2``.
    jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit, identity
        As for `LogReplay`.
    cache, url
        As for `fetch_log`.

    Raises
    ------
    WorkloadError
        If a value is out of range; the log is fetched by `trace`.

    Examples
    --------
    >>> ArchiveWorkload("KTH-SP2").log.file
    'KTH-SP2-1996-2.1-cln.swf.gz'
    """

    def __init__(
        self,
        name: str | None,
        jobs: int | None = None,
        load: float | None = None,
        estimates: str = "recorded",
        feedback: bool = False,
        cleaning: Mapping[str, str] | None = None,
        estimate_factor: float = 5.0,
        estimate_limit: float | None = None,
        identity: Identity = "auto",
        cache: str | os.PathLike[str] | None = None,
        url: str | None = None,
    ) -> None:
        if not name:
            raise WorkloadError(
                "workload.name is not set; give a log of the archive, such as "
                "workload.name=SDSC-SP2"
            )
        self.log = find_log(name)
        self.cache = cache
        self.url = url
        self.replay = LogReplay(
            jobs, load, estimates, feedback, cleaning, estimate_factor, estimate_limit, identity
        )

    def trace(self, streams: Streams, processors: int | None = None) -> Trace:
        """Fetch the log where it is not cached, and return its jobs.

        Raises
        ------
        WorkloadError
            If the log can neither be found in the cache nor fetched.
        """
        with terminal_progress(f"fetching {self.log.file}") as progress:
            path = fetch_log(self.log.name, self.cache, self.url, progress)
        return self.replay.apply(read_swf(path), streams, processors)
