"""The tables of the pages of results, each from the data of its study."""

from collections.abc import Iterator

from benchmarks.results.regions import (
    RESULTS,
    Row,
    change,
    data,
    figures,
    kept,
    lines,
    mean,
    median_error,
    one,
    table,
    worst,
)
from benchmarks.results.studies import STUDIES

PLACES = tuple(
    name
    for name in STUDIES
    if name.startswith("impact_") and (RESULTS / name / "data.json").is_file()
)
LEARNED = {
    "adept": "ADEPT",
    "consensus": "consensus",
    "regression": "regression",
    "amdahl": "Amdahl",
}
GIVEN = {"free": "given away", "charged": "charged", "online": "none"}
NOISY = ("noisy_oracle_10", "noisy_oracle", "noisy_oracle_50", "noisy_oracle_100")


def settings(
    models: bool | None = None,
) -> Iterator[tuple[list[str], list[Row], dict[str, str]]]:
    """Yield name and curves, rows and key of each setting: of all, of models or of logs alone."""
    for study in PLACES:
        if models in (None, study == "impact_lublin"):
            rows = data(study)["rows"]
            for curves in ("model", "measured"):
                yield [rows[0]["place"], curves], rows, {"curves": curves}


def rigid(rows: list[Row], **setting: str) -> Row:
    """Return EASY by what users ask for."""
    return one(rows, policy="easy", predictor="user_estimate", given="–", **setting)


def foresight(rows: list[Row], **setting: str) -> Row:
    return one(rows, policy="sa_easy", predictor="oracle", given="–", **setting)


@table("impact/known")
def impact_known() -> list[str]:
    head = [
        "workload",
        "curves",
        "oracle against EASY",
        *(f"{name}: share" for name in LEARNED.values()),
    ]
    rows = []
    for names, found, key in settings():
        key["sizes"] = "known"
        best, base = foresight(found, **key), rigid(found, **key)
        cells = [
            kept(one(found, policy="sa_easy", predictor=name, given="charged", **key), best, base)
            for name in LEARNED
        ]
        rows.append([*names, change(best, base), *cells])
    return lines(head, rows, 2)


@table("impact/noise")
def impact_noise() -> list[str]:
    rows = []
    for names, found, key in settings(models=True):
        key["sizes"] = "known"
        best, base = foresight(found, **key), rigid(found, **key)
        own = one(found, policy="easy", predictor="oracle", **key)
        cells = [kept(one(found, predictor=name, **key), best, base) for name in NOISY]
        rows.append([*names, kept(own, best, base), *cells])
    head = ["workload", "curves", "EASY, oracle", *(f"spread {s}" for s in (0.1, 0.2, 0.5, 1))]
    return lines(head, rows, 2)


@table("impact/given")
def impact_given() -> list[str]:
    """Compare runs given away, charged and none, with sizes known, in classes and hidden."""
    rows = []
    for sizes in ("known", "classes", "hidden"):
        for names, found, key in settings():
            key["sizes"] = sizes
            best, base, cells = foresight(found, **key), rigid(found, **key), []
            for name in ("adept", "consensus"):
                every = [
                    one(found, policy="sa_easy", predictor=name, given=given, **key)
                    for given in GIVEN
                ]
                cells += [kept(own, best, base) for own in every]
            share = f"{100 * figures(every[1], 'given_work_share').mean():.0f} %"
            rows.append([*names, sizes, *cells, share])
    head = [f"{name}, {how}" for name in ("ADEPT", "consensus") for how in GIVEN.values()]
    return lines(["workload", "curves", "sizes", *head, "work of charged runs"], rows, 3)


@table("impact/others")
def impact_others() -> list[str]:
    """Compare them for the two other predictors, with known sizes."""
    rows = []
    for names, found, key in settings():
        key["sizes"] = "known"
        best, base = foresight(found, **key), rigid(found, **key)
        cells = [
            kept(one(found, policy="sa_easy", predictor=name, given=g, **key), best, base)
            for name in ("regression", "amdahl")
            for g in ("free", "online")
        ]
        rows.append([*names, *cells])
    head = [f"{name}, {GIVEN[g]}" for name in ("regression", "Amdahl") for g in ("free", "online")]
    return lines(["workload", "curves", *head], rows, 2)


@table("impact/recorded")
def impact_recorded() -> list[str]:
    rows = []
    for names, found, key in settings(models=False):
        mine = {"given": "recorded", **key}
        base = one(found, policy="easy", predictor="user_estimate", **mine)
        for name in ("oracle", *LEARNED):
            own = one(found, policy="sa_easy", predictor=name, **mine)
            error = "–" if name == "oracle" else median_error(own)
            rows.append(
                [*names, LEARNED.get(name, name), change(own, base), worst(own, base), error]
            )
    head = [
        "log",
        "curves",
        "predictor",
        "change against EASY",
        "worst window / EASY",
        "median error",
    ]
    return lines(head, rows, 3)


@table("impact/policies")
def impact_policies() -> list[str]:
    rows = []
    for names, found, key in settings(models=True):
        key["sizes"] = "known"
        base, cells = rigid(found, **key), []
        for policy in ("iterative", "fair_share"):
            every = {
                p: one(found, policy=policy, predictor=p, **key)
                for p in ("oracle", "adept", "consensus")
            }
            best = every.pop("oracle")
            cells += [change(best, base), *(kept(own, best, base) for own in every.values())]
        rows.append([*names, *cells])
    head = ["workload", "curves"]
    for policy in ("iterative", "fair share"):
        head += [f"{policy}, oracle against EASY", "ADEPT: share", "consensus: share"]
    return lines(head, rows, 2)


@table("impact/errors")
def impact_errors() -> list[str]:
    """Median errors and the worst window of each learned predictor, charged."""
    rows = []
    for names, found, key in settings():
        base, cells = rigid(found, sizes="known", **key), []
        for name in LEARNED:
            own = one(
                found, policy="sa_easy", predictor=name, given="charged", sizes="known", **key
            )
            cells.append(f"{median_error(own)}, {worst(own, base)}")
        rows.append([*names, *cells])
    return lines(["workload", "curves", *LEARNED.values()], rows, 2)


@table("policies/menu")
def policies_menu() -> list[str]:
    rows = data("policies")["rows"]
    base = one(rows, policy="easy", predictor="user_estimate")
    names = {row["policy"] for row in rows}
    by = {
        name: {p: one(rows, policy=name, predictor=p) for p in ("oracle", "adept")}
        for name in names
    }
    order = sorted(names, key=lambda name: float(figures(by[name]["adept"]).mean()))
    shown = [
        [
            f"`{name}`",
            change(by[name]["adept"], base),
            change(by[name]["oracle"], base),
            worst(by[name]["adept"], base),
        ]
        for name in order
    ]
    return lines(["policy", "ADEPT", "oracle", "worst window with ADEPT"], shown)


@table("load/curves")
def load_curves() -> list[str]:
    rows, loads = data("load")["rows"], ("0.3", "0.6", "0.9")
    shown = []
    for policy, predictor in (
        ("easy", "user_estimate"),
        ("sa_easy", "oracle"),
        ("sa_easy", "adept"),
        ("iterative", "oracle"),
        ("iterative", "adept"),
    ):
        cells = [
            mean(
                one(rows, policy=policy, predictor=predictor, workload__load=load),
                "mean_response_time",
                1 / 3600,
            )
            for load in loads
        ]
        shown.append([f"`{policy}`, {predictor}", *cells])
    return lines(["mean response, h", *(f"load {load}" for load in loads)], shown)


@table("load/changes")
def load_changes() -> list[str]:
    rows, loads = data("load")["rows"], ("0.3", "0.6", "0.9")
    base = {load: one(rows, policy="easy", workload__load=load) for load in loads}
    shown = []
    for policy in ("sa_easy", "iterative"):
        for predictor in ("oracle", "adept"):
            found = {
                load: one(rows, policy=policy, predictor=predictor, workload__load=load)
                for load in loads
            }
            shown.append(
                [f"`{policy}`, {predictor}", *(change(found[load], base[load]) for load in loads)]
            )
    return lines(["against EASY", *(f"load {load}" for load in loads)], shown)


VARIED = (
    [
        ("applications", {"workload__applications": k}, f"{k} applications")
        for k in ("10", "50", "200", "1000")
    ]
    + [
        ("sizes", {"workload__sizes": k}, f"{k} size{'s' * (k != '1')} of each, known")
        for k in ("1", "5")
    ]
    + [("noise", {"workload__size_noise": k}, f"sizes, noise of {k}") for k in ("0", "0.3", "1")]
)


@table("repetition/varied")
def repetition_varied() -> list[str]:
    rows, shown = data("repetition")["rows"], []
    for varied, key, name in VARIED:
        mine = {"varied": varied, **key}
        base = one(rows, policy="easy", **mine)
        best = one(rows, predictor="oracle", **mine)
        own = one(rows, predictor="adept", **mine)
        cells = [kept(own, best, base), median_error(own)]
        shown.append([name, change(best, base), *cells])
    head = [
        "what repeats",
        "oracle against EASY",
        "ADEPT: share",
        "median error",
    ]
    return lines(head, shown)


@table("calibration/runs")
def calibration_runs() -> list[str]:
    rows = data("calibration")["rows"]
    base = one(rows, policy="easy", predictor="user_estimate")
    best = next(row for row in rows if row["predictor"] == "oracle" and row["policy"] == "sa_easy")
    shown = []
    for predictor in ("adept", "consensus"):
        for runs, charged in (
            ("0", "True"),
            ("3", "False"),
            ("3", "True"),
            ("6", "False"),
            ("6", "True"),
        ):
            own = one(
                rows,
                policy="sa_easy",
                predictor=predictor,
                predictor__calibration=runs,
                predictor__charge=charged,
            )
            how = (
                "none"
                if runs == "0"
                else f"{runs} {'charged' if charged == 'True' else 'given away'}"
            )
            share = f"{100 * figures(own, 'given_work_share').mean():.1f} %"
            fitted = f"{100 * figures(own, 'share_fitted_starts').mean():.0f} %"
            shown.append(
                [LEARNED[predictor], how, kept(own, best, base), median_error(own), share, fitted]
            )
    head = [
        "predictor",
        "runs before the start",
        "share",
        "median error",
        "their work",
        "starts decided by past runs",
    ]
    return lines(head, shown, 2)


@table("calibration/explore")
def calibration_explore() -> list[str]:
    rows, shown = data("calibration")["rows"], []
    for load in ("0.5", "0.8"):
        base = one(rows, policy="sa", predictor__calibration="0", workload__load=load)
        for name, key in (
            ("trying counts when idle", {"policy": "explore", "predictor__calibration": "0"}),
            ("three charged runs", {"policy": "sa", "predictor__calibration": "3"}),
            ("both", {"policy": "explore", "predictor__calibration": "3"}),
        ):
            own = one(rows, workload__load=load, **key)
            shown.append([load, name, change(own, base), median_error(own)])
        own = one(rows, policy="sa", predictor="oracle", workload__load=load)
        shown.append([load, "oracle", change(own, base), "–"])
    return lines(["load", "with", "change of mean response", "median error"], shown, 2)


@table("studies/all")
def studies_all() -> list[str]:
    """Return what each study took."""
    shown = []
    for name in STUDIES:
        if not (RESULTS / name / "data.json").is_file():
            continue
        found = data(name)
        size = (
            "–"
            if found["jobs"] is None
            else f"{found['jobs']} jobs, {found['replications']} replications"
        )
        took = "–" if found["seconds"] is None else f"{found['seconds'] / 60:.1f} min"
        shown.append([f"`{name}`", size, found["date"], f"`{found['commit'][:7]}`", took])
    return lines(["study", "each run", "date", "commit", "took"], shown, 4)
