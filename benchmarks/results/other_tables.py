"""Tables of malleable jobs, shared machines, and jobs that evolve or fail."""

from benchmarks.results.regions import (
    change,
    data,
    figures,
    lines,
    mean,
    median_error,
    one,
    table,
    worst,
)


@table("malleable/share")
def malleable_share() -> list[str]:
    rows, shown = data("malleable")["rows"], []
    base = one(rows, preset="share", policy="easy", moldability__share="0")
    for share in ("0.2", "0.4", "0.6", "1"):
        for strategy in ("min", "pref", "average", None):
            key = {"moldability__share": share}
            if strategy is None:
                own = one(rows, preset="share, no reclaim", **key)
            else:
                own = one(rows, preset="share", policy__reallocation__strategy=strategy, **key)
            efficiency = f"{figures(own, 'system_efficiency').mean():.2f}"
            shown.append(
                [
                    f"{100 * float(share):.0f} %",
                    strategy or "no reclaim",
                    change(own, base),
                    change(own, base, "makespan"),
                    efficiency,
                ]
            )
    return lines(["malleable", "pools", "mean response", "makespan", "system efficiency"], shown, 2)


@table("malleable/batch")
def malleable_batch() -> list[str]:
    rows, exponents = data("malleable")["rows"], ("0.3", "0.5", "0.9")
    base = {
        p: one(rows, preset="batch", policy="hesrpt", moldability__exponent_min=p)
        for p in exponents
    }
    shown = [
        ["`hesrpt`", *(mean(base[p], "mean_response_time", 1 / 3600) + " h" for p in exponents)]
    ]
    for policy in ("equi", "hell", "knee_first"):
        cells = [
            change(one(rows, preset="batch", policy=policy, moldability__exponent_min=p), base[p])
            for p in exponents
        ]
        shown.append([f"`{policy}`", *cells])
    return lines(["policy", *(f"p = {p}" for p in exponents)], shown)


@table("malleable/rules")
def malleable_rules() -> list[str]:
    rows = [row for row in data("malleable")["rows"] if row["preset"] == "rules"]
    base = one(rows, policy="equi")
    shown = []
    for own in sorted(rows, key=lambda row: float(figures(row).mean())):
        moved = figures(own, "reallocations").mean() / data("malleable")["jobs"]
        shown.append(
            [
                f"`{own['policy']}`",
                mean(own, "mean_response_time", 1 / 3600),
                "–" if own is base else change(own, base),
                f"{figures(own, 'system_efficiency').mean():.2f}",
                f"{moved:.1f}",
            ]
        )
    return lines(
        ["policy", "mean response, h", "against EQUI", "system efficiency", "changes a job"], shown
    )


@table("malleable/curves")
def malleable_curves() -> list[str]:
    rows, shown = [row for row in data("malleable")["rows"] if row["preset"] == "curves"], []
    for curves in ("downey", "general"):
        base = (
            one(rows, predictor="oracle", moldability=curves, policy="marginal")
            if any(row.get("policy") == "marginal" for row in rows)
            else next(
                row
                for row in rows
                if row["predictor"] == "oracle"
                and row["moldability"] == curves
                and row.get("policy") != "equi"
            )
        )
        for own in (row for row in rows if row["moldability"] == curves):
            name = "EQUI, which needs no curve" if own.get("policy") == "equi" else own["predictor"]
            shown.append(
                [
                    curves,
                    name,
                    "–" if own is base else change(own, base),
                    f"{figures(own, 'system_efficiency').mean():.2f}",
                ]
            )
    return lines(["curves", "predictor", "against the oracle", "system efficiency"], shown, 2)


LEVELS = {"[1,4]": "light", "[1,48]": "heavy", "[52829,158488]": "light", "[6488,19464]": "heavy"}


def shared(preset: str, key: str) -> list[str]:
    rows = [row for row in data("shared")["rows"] if row["preset"] == preset]
    shown = []
    levels = dict.fromkeys(row[key].replace(" ", "") for row in rows)
    for level in sorted(levels, key=lambda level: LEVELS[level], reverse=True):
        here = [row for row in rows if row[key].replace(" ", "") == level]
        for policy, twin in (
            ("easy_fastest", "easy"),
            ("sa_easy", "sa_easy_usual"),
            ("load_aware", "sa_easy_usual"),
        ):
            base = one(here, policy=twin)
            for belief in ("oracle", "forecast", "last"):
                own = one(here, policy=policy, cluster__belief=belief)
                shown.append(
                    [LEVELS[level], f"`{policy}`", belief, change(own, base), median_error(own)]
                )
    return lines(["load", "policy", "load to come", "against its twin", "median error"], shown, 3)


table("shared/rounds")(lambda: shared("shared_load", "cluster.cpu.at_once"))
table("shared/bursts")(lambda: shared("shared_bursts", "cluster.cpu.free"))


@table("evolving/walltime")
def evolving_walltime() -> list[str]:
    rows = [row for row in data("evolving")["rows"] if row["preset"] == "walltime"]
    base = one(rows, evolving__stop_in_time="False", evolving__resubmit="True")
    shown = []
    for own in rows:
        named = [own["evolving.stop_in_time"] == "True", own["evolving.resubmit"] == "True"]
        shown.append(
            [
                *("yes" if each else "no" for each in named),
                mean(own, "mean_response_time", 1 / 3600),
                "–" if own is base else change(own, base),
                mean(own, "restarts", 1, 0),
            ]
        )
    return lines(
        [
            "stop in time",
            "killed ones go on",
            "mean response, h",
            "against killed and going on",
            "restarts",
        ],
        shown,
        2,
    )


@table("evolving/ends")
def evolving_ends() -> list[str]:
    rows, shown = [row for row in data("evolving")["rows"] if row["preset"] == "better_ends"], []
    for policy in ("easy", "conservative"):
        base = one(rows, policy=policy, predictor="user_estimate")
        for predictor in ("dynamic", "oracle"):
            own = one(rows, policy=policy, predictor=predictor)
            shown.append([f"`{policy}`", predictor, change(own, base), worst(own, base)])
    return lines(
        ["policy", "ends by", "against requested times", "worst / requested times"], shown, 2
    )


@table("evolving/nodes")
def evolving_nodes() -> list[str]:
    rows, shown = [row for row in data("evolving")["rows"] if row["preset"] == "ill_nodes"], []
    for phase in ("7200", "28800", "115200"):
        base = one(rows, policy="easy", cluster__disturbed=phase)
        for react in ("avoid", "restart"):
            own = one(rows, policy="careful", policy__react=react, cluster__disturbed=phase)
            shown.append([f"{int(phase) / 3600:.0f} h", react, change(own, base)])
    return lines(["disturbed for", "`careful` may", "against a blind policy"], shown, 2)


def granted(preset: str) -> list[str]:
    """Return what granting changes against refusing, and how often jobs began anew."""
    rows = [row for row in data("evolving")["rows"] if row["preset"] == preset]
    shown = []
    for policy in ("easy", "conservative"):
        base = one(rows, policy=policy, **{"policy/grants": "none"})
        for grants in ("none", "now", "defer"):
            own = one(rows, policy=policy, **{"policy/grants": grants})
            against = "–" if own is base else change(own, base)
            hours = mean(own, "mean_response_time", 1 / 3600)
            shown.append([f"`{policy}`", grants, hours, against, mean(own, "restarts", 1, 0)])
    head = ["policy", "grants", "mean response, h", "against refusals", "restarts"]
    return lines(head, shown, 2)


table("evolving/limits")(lambda: granted("longer_limits"))
table("evolving/processors")(lambda: granted("more_processors"))
