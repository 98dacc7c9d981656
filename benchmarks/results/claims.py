"""Tables of published claims."""

from benchmarks.results.regions import (
    Row,
    change,
    data,
    figures,
    lines,
    mean,
    one,
    relative_change,
    table,
)
from sim.statistics import t_interval

PROCESSORS = "mean_allocated_processors"
LOADS = ("0.6", "0.8", "0.95")
HEAD = ["claim", "printed", "experiment", "found", "comes out"]


def verdict(own: Row, other: Row, figure: str, says: str) -> list[str]:
    """Return what was found, and whether the sign is the claim's at 95 %."""
    found = relative_change(figures(own, figure), figures(other, figure))
    if found.low <= 0 <= found.high:
        return [change(own, other, figure), "not shown"]
    fell = found.high < 0
    return [change(own, other, figure), "yes" if fell == (says == "less") else "no"]


def compared() -> list[list[str]]:
    """Return claim, what is printed, experiment, what was found, and whether it comes out."""
    rows = data("claims")["rows"]
    shown: list[list[str]] = []

    def add(
        claim: str,
        printed: str,
        where: str,
        own: Row,
        other: Row,
        figure: str = "mean_response_time",
        says: str = "less",
    ) -> None:
        shown.append([claim, printed, where, *verdict(own, other, figure, says)])

    def at(preset: str, policy: str, **key: str) -> Row:
        return one(rows, preset=preset, policy=policy, **key)

    for own, other, claim, printed in (
        ("scojo_p", "easy", "SCOJO-P below fixed sizes", "-70 %"),
        ("sa", "easy", "SA below fixed sizes", "-30 %"),
        ("scojo_p", "sa", "SCOJO-P below SA", "-59 %"),
    ):
        for load in ("0.8", "0.95"):
            add(
                claim,
                printed,
                f"`molding_by_load`, {load}",
                *(at("molding_by_load", p, workload__load=load) for p in (own, other)),
            )
        for least in ("4", "16", "64"):
            add(
                claim,
                printed,
                f"`scalability`, A from {least}",
                *(at("scalability", p, moldability__parallelism_min=least) for p in (own, other)),
            )
    for load in ("0.5", "0.9"):
        add(
            "SCOJO-P below SA",
            "-59 %",
            f"`molding_of_downey`, {load}",
            *(at("molding_of_downey", p, workload__load=load) for p in ("scojo_p", "sa")),
        )
    for load in ("0.3", "0.7", "0.9"):
        key = {"workload__load": load}
        others = [
            at("parallelism_and_load", p, **key)
            for p in ("avg", "downey_asp", "asp", "aep", "a_plus", "queue_time")
        ]
        nearest = min(others, key=lambda row: float(figures(row).mean()))
        cut = at("parallelism_and_load", "a_plus_cut", **key)
        add(
            "A+ cut under load is best",
            "best",
            f"`parallelism_and_load`, {load}, against `{nearest['policy']}`",
            cut,
            nearest,
        )
        add(
            "ASP above A+ cut",
            "worse",
            f"`parallelism_and_load`, {load}",
            at("parallelism_and_load", "asp", **key),
            cut,
            says="more",
        )
    for own, other in (("iterative", "fair_share"), ("fair_share", "sa")):
        claim = f"{own.replace('_', ' ')} below {other.replace('_', ' ').replace('sa', 'SA')}"
        for load in LOADS:
            add(
                claim,
                "less",
                f"`whole_queue`, {load}",
                *(at("whole_queue", p, workload__load=load) for p in (own, other)),
            )
        for least in ("1", "64"):
            add(
                claim,
                "less",
                f"`scalability`, A from {least}",
                *(at("scalability", p, moldability__parallelism_min=least) for p in (own, other)),
            )
    for part in ("0.02", "0.1", "0.5"):
        add(
            "iterative below fair share",
            "less",
            f"`one_fraction`, {part}",
            *(
                at("one_fraction", p, moldability__serial_min=part)
                for p in ("iterative", "fair_share")
            ),
        )
    add(
        "utilisation-based below rigid",
        "up to -75 %",
        "`whole_queue`, 0.8, against conservative",
        *(at("whole_queue", p, workload__load="0.8") for p in ("utilization", "conservative")),
    )
    for part in ("0.02", "0.1", "0.5"):
        add(
            "utilisation-based below rigid",
            "up to -75 %",
            f"`one_fraction`, {part}",
            *(at("one_fraction", p, moldability__serial_min=part) for p in ("utilization", "easy")),
        )
        for other in ("asp", "fair_share"):
            add(
                "utilisation-based below earlier rules",
                "-3 %",
                f"`one_fraction`, {part}, against `{other}`",
                *(
                    at("one_fraction", p, moldability__serial_min=part)
                    for p in ("utilization", other)
                ),
            )
    for least in ("1", "64"):
        herd = {
            load: {
                s: at(
                    "herd",
                    "sa",
                    workload__load=load,
                    policy__allocation__adopters=s,
                    moldability__parallelism_min=least,
                )
                for s in ("0", "1")
            }
            for load in ("0.3", "0.9")
        }
        add(
            "SA asks for less as load rises",
            "less",
            f"`herd`, A from {least}, 0.9 against 0.3",
            herd["0.9"]["1"],
            herd["0.3"]["1"],
            PROCESSORS,
        )
        for load, claim, says in (
            ("0.3", "adopters hurt each other at light load", "more"),
            ("0.9", "efficiency outweighs that at heavy load", "less"),
        ):
            everybody, nobody = herd[load]["1"], herd[load]["0"]
            where = f"`herd`, A from {least}, {load}, all against none"
            add(claim, says, where, everybody, nobody, says=says)
    return shown


def malleable_compared() -> list[list[str]]:
    """Return the same of malleable jobs."""
    moving = data("malleable")["rows"]
    shown: list[list[str]] = []

    def add(claim: str, printed: str, where: str, own: Row, other: Row) -> None:
        shown.append([claim, printed, where, *verdict(own, other, "mean_response_time", "less")])

    rigid = one(moving, preset="share", policy="easy", moldability__share="0")
    for share in ("0.2", "0.4", "1"):
        own = one(
            moving,
            preset="share",
            policy="pools",
            moldability__share=share,
            policy__reallocation__strategy="average",
        )
        add(
            "malleable share already gains",
            "-37 to -67 % at best",
            f"`malleable_share`, {share}",
            own,
            rigid,
        )
    for exponent in ("0.3", "0.5", "0.9"):
        best = one(moving, preset="batch", policy="hesrpt", moldability__exponent_min=exponent)
        for other in ("equi", "hell", "knee_first"):
            add(
                "heSRPT below its rivals",
                "-23 % or more",
                f"`malleable_batch`, p = {exponent}, against `{other}`",
                best,
                one(moving, preset="batch", policy=other, moldability__exponent_min=exponent),
            )
    return shown


@table("claims/malleable")
def claims_malleable() -> list[str]:
    return lines(HEAD, malleable_compared(), 3)


@table("claims/verdicts")
def claims_verdicts() -> list[str]:
    shown = compared()
    for each in data("claims")["queue_times"]:
        found = t_interval(figures(each, "correlation"))
        inside = "yes" if found.high >= 0.65 and found.low <= 0.72 else "no"
        said = f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]"
        where = f"`queue_time_prediction`, {each['model']}, {each['load']}"
        shown.append(["queue times from ages correlate", "0.65 to 0.72", where, said, inside])
    return lines(HEAD, shown, 3)


def pivot(preset: str, key: str, reference: str, study: str = "claims") -> list[str]:
    """Return changes against a policy by a swept key, and that policy's mean in hours."""
    rows = [row for row in data(study)["rows"] if row.get("preset") == preset]
    columns = sorted({row[key] for row in rows}, key=float)
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    shown = []
    for policy in [reference, *(name for name in policies if name != reference)]:
        cells = []
        for value in columns:
            own, base = (one(rows, policy=name, **{key: value}) for name in (policy, reference))
            cells.append(
                mean(own, "mean_response_time", 1 / 3600) + " h"
                if own is base
                else change(own, base)
            )
        shown.append([f"`{policy}`", *cells])
    return lines(["policy", *(f"{key.rpartition('.')[2]} {value}" for value in columns)], shown)


for _preset, _key, _reference in (
    ("molding_by_load", "workload.load", "easy"),
    ("molding_of_downey", "workload.load", "easy"),
    ("parallelism_and_load", "workload.load", "a_plus_cut"),
    ("whole_queue", "workload.load", "sa"),
    ("scalability", "moldability.parallelism_min", "sa"),
    ("one_fraction", "moldability.serial_min", "easy"),
):
    table(f"claims/{_preset}")(lambda p=_preset, k=_key, r=_reference: pivot(p, k, r))
