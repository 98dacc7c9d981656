"""Show which recommendations rest on what predictors were given.

Usage: python -m scripts.study_given WORKLOAD [--log FILE] [--jobs N] [--draws K]
           [--out FILE.json] [key=value ...]

WORKLOAD is ``slurm`` (what sacct printed, 120 processors), ``sdsc`` (SDSC-SP2) or
``lublin``. The same candidates are compared with rigid EASY by users' estimates at the
former defaults, with the same runs charged, without them, with the log's own
applications of hidden sizes, and where nothing tells jobs of one application. Prints
a table, and writes it with date and command.
"""

import argparse
import datetime
import json
import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.composing import composed
from sim.console import Value
from sim.given import given_figures
from sim.metrics import summarise
from sim.report.answer_tables import percent
from sim.report.answers import FIGURE, Difference, differences
from sim.report.samples import Group, Sample
from sim.report.tables import given_sentences
from sim.run import play, set_scene
from sim.statistics.intervals import Interval

INVENTED = ("workload.applications=50", "workload.size=known")
RECORDED = ("given=online", "workload.applications=log", "workload.size=hidden")
SETTINGS: Mapping[str, tuple[str, ...]] = {
    "former defaults": ("experiment=as_before",),
    "charged runs": ("given=charged", *INVENTED),
    "no calibration": ("given=online", *INVENTED),
    "recorded applications": RECORDED,
    "no job like another": (*RECORDED, "workload.identity=none"),
}
"""What predictors are given; the last two need a log."""
CANDIDATES = (
    *(("easy", "user_estimate"), ("conservative", "user_estimate")),
    *((policy, predictor) for policy in ("sa", "efficiency") for predictor in ("amdahl", "adept")),
    *(("easy", "amdahl"), ("easy", "adept"), ("sa", "oracle")),
)
"""Policies and predictors; the first is the reference, the last one the yardstick."""


@dataclass(frozen=True)
class Place:
    """Where jobs come from.

    Attributes
    ----------
    overrides : tuple of str
    seeds : bool
        Whether seeds draw anew, or replications, which take other jobs of a log.
    is_log : bool
    """

    overrides: tuple[str, ...]
    seeds: bool
    is_log: bool


PLACES = {
    "slurm": Place(
        ("workload=sacct", "cluster.processors=120", "moldability.share=0.5"), True, True
    ),
    "sdsc": Place(("workload=swf", "workload.jobs=1000"), False, True),
    "lublin": Place(("workload=lublin", "workload.jobs=1000"), False, False),
}


def draws(place: Place, number: int) -> Iterator[tuple[int, int]]:
    """Yield seed and replication of each draw."""
    for k in range(number):
        yield (k + 1, 0) if place.seeds else (1, k)


def carry_out(place: Place, given: Sequence[str], number: int, more: Sequence[str]) -> list[Group]:
    """Return a group of simulations for each candidate, all on the same jobs."""
    groups = [Group({"policy": p, "predictor": q}, "run") for p, q in CANDIDATES]
    for seed, replication in draws(place, number):
        scene = None
        for (policy, predictor), group in zip(CANDIDATES, groups, strict=True):
            names = (f"policy={policy}", f"predictor={predictor}", f"seed={seed}")
            config = composed(*given, *place.overrides, *more, *names, "baseline=null")
            scene = set_scene(config, replication) if scene is None else scene
            played = play(config, config, scene)
            said = given_figures(config, scene, played)
            summary = summarise(played.outcome, calibration=played.known, more=said)
            label = f"seed={seed}/replication={replication}"
            group.samples.append(Sample(Path(), label, summary | {"seed": seed}))
    return groups


def best_of(found: Sequence[Difference]) -> Difference:
    """Return what would be recommended: the best without foresight."""
    honest = [one for one in found if one.group.predictor != "oracle"]
    return min(honest, key=lambda one: one.comparison.change.mean)


def survives(one: Difference) -> bool:
    """Return whether a recommendation stands: certain, and better than what there is."""
    return one.certain and one.comparison.change.mean < 0


def _limits(interval: Interval | None) -> list[float | None]:
    if interval is None:
        return [None, None, None]
    values = (interval.mean, interval.low, interval.high)
    return [None if math.isnan(value) else round(value, 4) for value in values]


def _row(setting: str, groups: Sequence[Group], former: str | None) -> dict[str, object]:
    found = differences(groups, FIGURE, groups[0].label)
    best = best_of(found)
    named = {one.group.label: one for one in found}
    kept = named[former or best.group.label]
    reference = float(groups[0].values(FIGURE).mean())
    return {
        "setting": setting,
        "given": given_sentences([kept.group])[0].partition(": ")[2],
        "reference_mean_response_time": round(reference, 1),
        "recommended": best.group.label,
        "recommended_mean_response_time": round(float(best.group.values(FIGURE).mean()), 1),
        "recommended_change": _limits(best.comparison.change),
        "recommended_certain": best.certain,
        "former": kept.group.label,
        "former_mean_response_time": round(float(kept.group.values(FIGURE).mean()), 1),
        "former_change": _limits(kept.comparison.change),
        "former_policy_alone": _limits(kept.alone),
        "former_survives": survives(kept),
        "oracle_change": _limits(named["sa, oracle"].comparison.change),
    }


def study(place: Place, number: int, more: Sequence[str]) -> list[dict[str, object]]:
    """Return a row for each setting; that of the former defaults names the recommendation."""
    rows: list[dict[str, object]] = []
    for setting, given in SETTINGS.items():
        if place.is_log or "workload.applications=log" not in given:
            groups = carry_out(place, given, number, more)
            former = str(rows[0]["former"]) if rows else None
            rows.append(_row(setting, groups, former))
    return rows


def _interval(limits: object) -> str:
    mean, low, high = (math.nan if v is None else float(v) for v in limits)  # type: ignore[attr-defined]
    return percent(Interval(mean, low, high, 0))


def _shown(row: Mapping[str, object]) -> list[Value]:
    sure = "certain" if row["recommended_certain"] else "not certain"
    return [
        str(row["setting"]),
        str(row["recommended"]),
        f"{_interval(row['recommended_change'])}, {sure}",
        _interval(row["former_change"]),
        _interval(row["former_policy_alone"]),
        "yes" if row["former_survives"] else "no",
    ]


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Return the rows as Markdown."""
    former = rows[0]["former"]
    heads = ["given", "recommended", "change against easy, user_estimate",
             f"the same of {former}", "by its policy alone", "survives"]  # fmt: skip
    lines = [heads, ["---"] * len(heads), *map(_shown, rows)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Carry out the study of one workload, print and write its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("workload", choices=list(PLACES))
    parser.add_argument("overrides", nargs="*")
    parser.add_argument("--log", type=Path)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_intermixed_args(arguments)
    place = PLACES[asked.workload]
    more = [*asked.overrides, *([f"workload.path={asked.log}"] if place.is_log else [])]
    rows = study(place, asked.draws, more)
    print(table(rows))
    for row in rows:
        print(f"\n{row['setting']}: {row['given']}")
    if asked.out is not None:
        given = list(sys.argv[1:] if arguments is None else arguments)
        for path in filter(None, (asked.log, asked.out)):
            if path.is_absolute():  # the record is of no one machine
                given = [one.replace(str(path), path.name) for one in given]
        command = shlex.join(["python", "-m", "scripts.study_given", *given])
        record = {"date": f"{datetime.date.today()}", "command": command, "rows": rows}
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        asked.out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
