"""Why better ends of running jobs harm EASY: beliefs of waiting and of running jobs, apart.

Prints how response times under EASY compare with those by users' estimates alone when
the beliefs about running jobs are renewed, renewed in one direction, or exact, while
waiting jobs keep their users' estimates; and the other way round. Beside it the share of
jobs that started ahead of one that was submitted before.

    python -m scripts.study_ends --seeds 30
"""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from scripts.composing import composed
from scripts.study_shared import changes, interval
from sim import recoveries
from sim.renewal import Renewal
from sim.run import play, set_scene
from sim.view import Run

FloatArray = NDArray[np.float64]
Ends = Literal["renewed", "earlier", "later", "exact", "requested"]

EXACT_BEFORE = "predictor/before=oracle"
WAYS: dict[tuple[str, str], tuple[Ends, list[str]]] = {
    ("users' estimates", "users' estimates"): ("renewed", ["predictor=user_estimate"]),
    ("users' estimates", "renewed"): ("renewed", ["predictor=dynamic"]),
    ("users' estimates", "renewed if earlier"): ("earlier", ["predictor=dynamic"]),
    ("users' estimates", "renewed if later"): ("later", ["predictor=dynamic"]),
    ("users' estimates", "exact"): ("exact", ["predictor=dynamic"]),
    ("exact", "users' estimates"): ("requested", ["predictor=dynamic", EXACT_BEFORE]),
    ("exact", "renewed"): ("renewed", ["predictor=dynamic", EXACT_BEFORE]),
    ("exact", "exact"): ("renewed", ["predictor=oracle"]),
}
"""Beliefs of waiting and of running jobs: how ends are renewed, and overrides."""


class Seen(NamedTuple):
    """Response times of one run, seconds, and the share of jobs that passed another."""

    response: FloatArray
    passed: float


def renewal(ends: Ends, requested: FloatArray) -> type[Renewal]:
    """Return a kind of renewal that moves the believed ends of running jobs as asked."""

    class Asked(Renewal):
        def begin(self, run: Run, now: float) -> None:
            super().begin(run, now)
            if ends == "exact":
                self._move(run, now + self._work.runtime(run.job, run.processors))
            elif ends == "requested":
                self._move(run, now + float(requested[run.job]))

        def renew(self, job: int, now: float) -> bool:
            return ends not in ("exact", "requested") and super().renew(job, now)

    if ends not in ("earlier", "later"):
        return Asked

    class OneWay(Asked):
        def __init__(self, *parts: Any) -> None:
            *others, move = parts

            def one_way(run: Run, end: float) -> None:
                if (end < run.believed_end) == (ends == "earlier"):
                    move(run, end)

            super().__init__(*others, one_way)

    return OneWay


@contextmanager
def renewed_by(kind: type[Renewal]) -> Iterator[None]:
    """Let the engine renew beliefs by another class for a while."""
    before, recoveries.Renewal = recoveries.Renewal, kind  # type: ignore[misc]
    try:
        yield
    finally:
        recoveries.Renewal = before  # type: ignore[misc]


def run(ends: Ends, overrides: Sequence[str]) -> Seen:
    """Return what one run showed."""
    config = composed("experiment=better_ends", "policy=easy", *overrides)
    scene = set_scene(config, 0)
    requested = scene.trace.jobs["requested_time"].to_numpy(float)
    with renewed_by(renewal(ends, requested)):
        records = play(config, config, scene).outcome.records
    start = np.asarray(records.start_time, float)
    passed = float((start[1:] < np.maximum.accumulate(start)[:-1]).mean())
    return Seen(np.asarray(records.end_time - records.submit_time, float), passed)


def rows(seeds: int, more: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each pair of beliefs."""
    first: list[FloatArray] | None = None
    for names, (ends, overrides) in WAYS.items():
        seen = [run(ends, [*overrides, *more, f"seed={k}"]) for k in range(1, seeds + 1)]
        response = [each.response for each in seen]
        gained = ("", "") if first is None else changes(response, first)
        first = first or response
        minutes = interval(np.array([each.mean() / 60 for each in response]))
        yield *names, minutes, *gained, f"{100 * np.mean([each.passed for each in seen]):.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--more", nargs="*", default=[], help="overrides, as workload.jobs=100")
    arguments = parser.parse_args()
    heading = ("waiting jobs", "running jobs", "response, minutes", "mean, %", "typical job, %")
    print("| " + " | ".join((*heading, "passed another, %")) + " |\n" + "| --- " * 6 + "|")
    for row in rows(arguments.seeds, arguments.more):
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
