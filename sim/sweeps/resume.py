"""Many runs: leave out what is finished, hand over the rest in parts, go on past crashes.

A finished run is known again by a note in its folder, without composing it.
"""

import functools
import hashlib
import json
import logging
import math
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from predictors.cli.terminal import duration
from sim.errors import AT_LEAST_1, ConfigError, SimError
from sim.help.interrupts import goes_on
from sim.help.pages import roots
from sim.help.versions import NAME, installed
from sim.results import durable, provenance
from sim.results.artefacts import MARK, foreign
from sim.sweeps.configurations import HOW, folder_name, key_of, load_yaml, override_dirname
from sim.sweeps.locks import PAUSE, holder, refuse_foreign

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

    The order of overrides is ignored, and those that change no result.
    """
    own = [one for one in overrides if key_of(one) not in HOW]
    text = "\0".join([_configuration_hash(), *sorted(own)])
    return hashlib.sha256(text.encode()).hexdigest()


def mark_finished(
    folder: Path, overrides: Combination, files: Mapping[str, Path], config: Mapping[str, Any]
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
    mark = {
        "overrides_sha256": fingerprint(overrides),
        provenance.INPUTS: plain,
        LISTED: provenance.listings(config),
    }
    durable.write_whole(path, json.dumps(mark))


def is_marked(folder: Path, overrides: Combination) -> bool:
    """Return whether this very run is finished and whole in a folder, without composing it."""
    mark = durable.known_object(folder / MARK)
    if mark is None or mark.get("overrides_sha256") != fingerprint(overrides):
        return False
    noted = {name: Path(file) for name, file in mark[provenance.INPUTS].items()}
    files = {name: file for name, file in noted.items() if file.is_file()}
    for key, value in mark[LISTED].items():
        files |= provenance.listed_files(key, value)
    keep_code = any(one.lstrip("+") == f"reuse={provenance.KEEP}" for one in overrides)
    identity = {provenance.INPUTS: provenance.checked_inputs(files)}
    return provenance.why_again(folder, identity, keep_code=keep_code) is None


_APART = "\x1f"
"""Stands between the overrides of a run while a launcher takes them for one."""
BATCH = 500
"""Runs handed to a launcher at once: it keeps their results until all are back."""
SLURM_ARRAY = 1000
"""The same for Slurm where ``scontrol`` does not say; its own default is 1001."""
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def spread(combinations: Sequence[Sequence[str]]) -> list[Sequence[str]]:
    """Return runs in an order whose beginning is like the whole, and tells how long that takes.

    Combinations next to each other differ in little, and the last key varies fastest: in
    their own order the first runs may all be of the quickest policy.

    Examples
    --------
    >>> [one[0] for one in spread([[str(number)] for number in range(8)])]
    ['0', '5', '2', '7', '4', '1', '6', '3']

    References
    ----------
    The golden ratio's multiples, modulo 1, are spread evenly: Knuth, TAOCP 3, 6.4.
    """
    places = sorted(range(len(combinations)), key=lambda place: place * GOLDEN % 1.0)
    return [combinations[place] for place in places]


def batch_size(launcher: str) -> int:
    """Return how many jobs may be handed to a launcher at once; to Slurm as many as it says."""
    if "slurm" not in launcher.lower():
        return BATCH
    command = ["scontrol", "show", "config"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):  # there is none, or it does not answer
        return SLURM_ARRAY
    limit = re.search(r"^MaxArraySize\s*=\s*(\d+)", ended.stdout, re.MULTILINE)
    return max(int(limit[1]) - 1, 1) if limit else SLURM_ARRAY


def packed(launcher: Any, runs: int) -> Any:
    """Return a launcher that carries out so many runs in each job, one after the other.

    Parameters
    ----------
    launcher : hydra_plugins.hydra_submitit_launcher.submitit_launcher.BaseSubmititLauncher
        Set up; its settings are those of the whole job.
    runs : int
        At least 1.

    Raises
    ------
    ConfigError
        If the launcher has no jobs of its own to share, or `runs` is less than 1.
    """
    AT_LEAST_1.check(**{"hydra.sweeper.runs_per_job": runs})
    kind = type(launcher)
    if not hasattr(kind, "_EXECUTOR"):
        raise ConfigError(
            f"hydra.sweeper.runs_per_job={runs} goes with hydra/launcher=submitit_slurm and "
            f"submitit_local, whose jobs start Python anew; {kind.__name__} starts it once"
        )

    class Packed(kind):  # type: ignore[misc, valid-type]
        """Takes a whole run for one override, and a list of runs for a job."""

        def __call__(
            self, sweep_overrides: Sequence[str], key: str, number: int, *rest: Any
        ) -> list[Any]:
            results = [
                super(Packed, self).__call__(run.split(_APART), key, number * runs + place, *rest)
                for place, run in enumerate(sweep_overrides)
            ]
            for result in results:
                _ = result.return_value  # raises what the run raised
            return []

        def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> list[Any]:
            joined = [_APART.join(overrides) for overrides in job_overrides]
            jobs = [joined[first : first + runs] for first in range(0, len(joined), runs)]
            super().launch(jobs, initial_job_idx)
            return []

    copy = Packed(**launcher.params)
    copy.setup(
        hydra_context=launcher.hydra_context,
        task_function=launcher.task_function,
        config=launcher.config,
    )
    return copy


SECONDS = 1.0
"""Between two looks at the folders, at least."""
REDRAWN = 1.0
"""Between two times that the line is drawn on a terminal, where others may have printed."""
SHARE = 0.02
"""Of the time may be spent on looking, at most."""
LOG = "sweep.log"
TRIES = 3
"""How often a run is done anew that ends without a word."""


class SweepState(NamedTuple):
    """How far a sweep is."""

    done: int
    failed: int
    running: int
    total: int


class SweepProgress:
    """Watches the folders of runs from a thread of its own, whatever carries them out.

    A line goes to ``sweep.log`` in the sweep's folder, and to standard error, whenever
    the counts have changed; on a terminal one line is redrawn all the time.

    Parameters
    ----------
    folder : pathlib.Path
        The sweep's.
    runs : sequence of pathlib.Path
        Folders of the runs that are to be carried out; without any, nothing is shown.
    before : int
        Runs that were finished before.
    quiet : bool
        Whether standard error gets nothing.

    Examples
    --------
    >>> with SweepProgress(Path("nowhere"), []):
    ...     pass
    """

    def __init__(
        self, folder: Path, runs: Sequence[Path], before: int = 0, quiet: bool = False
    ) -> None:
        self._folder, self._waiting, self._quiet = folder, list(runs), quiet
        self._before, self._state = before, SweepState(before, 0, 0, len(runs) + before)
        self._ended_at = 0.0  # since the begin, when one ended last
        self._begun = time.time()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sweep progress", daemon=True)
        self._last: SweepState | None = None

    def look(self, over: bool = False) -> SweepState:
        """Return how far the sweep is; folders of runs that ended are not looked at again.

        Once it is over, runs whose results were there and stand are done, too.
        """
        waiting, running, since = [], 0, 0.0 if over else self._begun
        done, failed, _, total = self._state
        for run in self._waiting:
            if _is_new(run / durable.FAILURE, self._begun):
                failed += 1
            elif _is_new(run / durable.SUMMARY, since):
                done += 1
            else:
                waiting.append(run)
                running += _is_new(run / durable.LOCK, self._begun)
        if len(waiting) < len(self._waiting):
            self._ended_at = time.time() - self._begun
        self._waiting, self._state = waiting, SweepState(done, failed, running, total)
        return self._state

    def line(self) -> str:
        """Return the state as text."""
        state = self._state
        ended = state.done - self._before + state.failed
        rest = state.total - state.done - state.failed
        spent = time.time() - self._begun
        whole = self._ended_at * (1.0 + rest / ended) if ended else 0.0
        left = duration(max(whole - spent, 0.0)) if ended else "-:--:--"
        return (
            f"{state.done:,} of {state.total:,} done, {state.failed:,} failed, "
            f"{state.running:,} running, {rest - state.running:,} waiting, "
            f"{duration(spent)} spent, {left} left"
        )

    def _watch(self) -> None:
        due = 0.0
        while not self._stop.wait(REDRAWN):
            began = time.monotonic()
            if began >= due:
                self.look()
                ended = time.monotonic()
                due = ended + max(SECONDS, (ended - began) / SHARE)
            self._show()

    def _show(self, *, last: bool = False) -> None:
        line, is_news = self.line(), last or self._state != self._last
        self._last = self._state
        if sys.stderr.isatty() and not self._quiet:
            fits = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"\r\033[K{line[:fits]}" + ("\n" if last else ""))
            sys.stderr.flush()
        elif is_news and not self._quiet:
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()
        if is_news:
            _note(self._folder, line)

    def __enter__(self) -> Self:
        if self._waiting:
            for one in _launchers():
                one.addFilter(_erase_line)
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._stop.set()
        for one in _launchers():
            one.removeFilter(_erase_line)
        if self._thread.is_alive():
            self._thread.join()
        if self._state.total > self._before and kind is None:
            self.look(over=True)
            self._show(last=True)


def _note(folder: Path, line: str) -> None:
    """Add a line to the log of a sweep."""
    with (folder / LOG).open("a", encoding="utf-8") as stream:
        stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {line}\n")


def _launchers() -> list[logging.Logger]:
    """Return the loggers of Hydra, whose launchers print a line for each run."""
    return [logging.getLogger(name) for name in list(logging.root.manager.loggerDict)
            if name.startswith("hydra")]  # fmt: skip


def _erase_line(record: logging.LogRecord) -> bool:
    """Take the line of progress off a terminal before a record is printed; let it pass."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K")
        sys.stderr.flush()
    return True


def _is_new(path: Path, since: float) -> bool:
    """Return whether a file was written since an instant (2 s for clocks that differ)."""
    try:
        return path.stat().st_mtime > since - 2.0
    except OSError:
        return False


VALIDATED = 8
"""Values of each key that are composed beforehand, to fail early."""
SWEEP_FOLDER = "hydra.sweep.dir="
SUBDIR = "${moldsim.folder:${hydra.job.override_dirname}}"
logger = logging.getLogger(__name__)


def samples_to_validate(combinations: Sequence[Combination]) -> list[list[str]]:
    """Return few combinations that have each of the first values of every key once.

    Examples
    --------
    >>> samples_to_validate([["a=1", "b=1"], ["a=1", "b=2"], ["a=2", "b=1"], ["a=2", "b=2"]])
    [['a=1', 'b=1'], ['a=2', 'b=1'], ['a=1', 'b=2']]
    """
    if not combinations:
        return []
    first = list(combinations[0])
    samples = [first]
    for place in range(len(first)):
        values = list(dict.fromkeys(combination[place] for combination in combinations))
        for value in values[1:VALIDATED]:
            samples.append([*first[:place], value, *first[place + 1 :]])
    return samples


class Sweep:
    """All runs of a multirun.

    Parameters
    ----------
    folder : pathlib.Path
        ``hydra.sweep.dir``.
    hydra : mapping
        The ``hydra`` part of the configuration, not resolved.
    combinations : sequence of sequences of str
        The overrides of each run.
    launch : callable
        Carries out some runs; gets their overrides and the number of the first.
    runs_per_job : int
        Runs that share a job of the launcher's.
    """

    def __init__(
        self,
        folder: Path,
        hydra: Mapping[str, Any],
        combinations: Sequence[Combination],
        launch: Callable[[Sequence[Combination], int], None],
        runs_per_job: int = 1,
    ) -> None:
        self.folder = folder
        self.launcher = str(hydra["launcher"].get("_target_", ""))
        self.launch = launch
        self.runs_per_job = runs_per_job
        found = hydra.get("runtime", {}).get("config_sources", ())
        added = [str(one["path"]) for one in found if one["provider"] == "command-line"]
        self.known = hydra["sweep"]["subdir"] == SUBDIR
        self.marked = self.known and not (hydra.get("searchpath") or added)
        self.excluded = hydra["job"]["config"]["override_dirname"]["exclude_keys"]
        self.combinations = combinations
        self.next = 0
        asked = hydra.get("overrides", {})
        words = [one for part in ("task", "hydra") for one in asked.get(part, ())]
        words = [one for one in words if not one.startswith(("hydra.mode=", SWEEP_FOLDER))]
        words = [word for path in added for word in ("--config-dir", path)] + words
        self.command = ["moldsim", "sweep", *words, f"{SWEEP_FOLDER}{folder}"]

    def place(self, combination: Combination) -> Path:
        """Return the folder of a run."""
        return self.folder / folder_name(override_dirname(combination, self.excluded))

    def run(self, most: int | None) -> None:
        """Carry out what is not finished, in parts of at most so many runs."""
        left = [c for c in self.combinations if not (self.marked and self.finished(c))]
        done = len(self.combinations) - len(left)
        if done:
            logger.warning("%d of %d runs are finished already", done, len(self.combinations))
        places: list[Path] = []
        if self.known:  # folders are named from overrides, not from the order
            left = spread(left)
            places = [self.place(c) for c in left]
            for place in places:
                refuse_foreign(place)
            if again := sum((place / durable.SUMMARY).exists() for place in places):
                logger.warning(
                    "%d finished runs are done again if their inputs or the code have changed; to "
                    "keep those of older code stop by Ctrl-C and add reuse=inputs",
                    again,
                )
            asked = {self.place(combination) for combination in self.combinations}
            there = self.folder.glob(f"*/{durable.MANIFEST}")
            found = [durable.known_object(one) or {} for one in there if one.parent not in asked]
            own = provenance.code_checksum()
            if others := sum(one.get(provenance.CODE) != own for one in found):
                logger.warning(
                    "%d other runs in %s are of another version of the program: a comparison will "
                    "not pair them with these; to do them again start their sweep by its command, "
                    "in %s",
                    others,
                    self.folder,
                    LOG,
                )
            goes_on(self.command)
            if left:
                _note(self.folder, shlex.join(self.command))
        size = most or self.runs_per_job * batch_size(self.launcher)
        with SweepProgress(self.folder, places, done, "sim.progress=false" in self.command):
            for begin in range(0, len(left), size):
                self._carry_out(left[begin : begin + size])
            if self.known:
                self._come_back(left)

    def _come_back(self, left: Sequence[Combination]) -> None:
        """Wait for runs that other processes are at, and do those that these have given up."""
        tries = dict.fromkeys(range(len(left)), TRIES)
        while tries:
            for number in list(tries):
                place = self.place(left[number])
                if holder(place) is not None:
                    continue
                if self.ended(left[number]) or not tries[number]:
                    del tries[number]
                    continue
                tries[number] -= 1
                self._carry_out([left[number]])
            time.sleep(PAUSE if tries else 0.0)

    def ended(self, combination: Combination) -> bool:
        """Return whether a run is finished or has failed."""
        return (self.place(combination) / durable.FAILURE).exists() or self.finished(combination)

    def finished(self, combination: Combination) -> bool:
        """Return whether a run is finished with this configuration."""
        return is_marked(self.place(combination), combination)

    def _carry_out(self, batch: Sequence[Combination]) -> None:
        """Launch runs; if that breaks, halve what is left until the culprit stands alone."""
        try:
            self.launch(batch, self.next)
        except Exception as error:  # a launcher passes on whatever its workers died of
            if not self.known:
                raise
            logger.info("a part of the sweep failed", exc_info=True)
            left = [c for c in batch if not self.ended(c) and holder(self.place(c)) is None]
            if left and len(batch) == 1:
                words = " ".join(str(error).split())
                if foreign(place := self.place(left[0])) is None:
                    durable.write_failure(place, f"{type(error).__name__}: {words}"[:2000])
                return
        else:
            self.next += len(batch)
            return
        middle = (len(left) + 1) // 2
        for part in (left[:middle], left[middle:]):
            if part:
                self._carry_out(part)


def comes_back(hydra: Mapping[str, Any]) -> bool:
    """Return whether a `Sweep` carries out a multirun, in folders that overrides alone name.

    It comes back for runs that other processes were at.
    """
    own = str(hydra["sweeper"]["_target_"]).endswith(".MoldsimSweeper")
    return own and hydra["sweep"]["subdir"] == SUBDIR


def asked_of(plan: Path) -> set[Path]:
    """Return the folders of the runs that a ``multirun.yaml`` asks for.

    Empty where it does not tell: of a sweeper that searches, of other folders, of axes with
    ``glob`` or more than a million runs.
    """
    from sim.sweeps.shapes import runs_of  # late: Hydra is needed for sweeps alone

    try:
        hydra = load_yaml(plan)["hydra"]
        given = [f"{key}={value}" for key, value in (hydra["sweeper"]["params"] or {}).items()]
        every = runs_of([*given, *hydra["overrides"]["task"]])
        sweep = Sweep(plan.parent, hydra, every, print)
        return {sweep.place(one) for one in every} if comes_back(hydra) else set()
    except (AttributeError, KeyError, TypeError, SimError):
        return set()
