"""Five logs in windows: the default rule against EASY and against orders of backfilling."""

import numpy as np

from benchmarks.results.regions import Row, data, figures, lines, one, share_of_gain, table
from sim.results.rows import percent
from sim.statistics import Family, compare, log_ratios

RULES = {
    "easy_sjbf": ("EASY-SJBF", "user_estimate"),
    "easy_plus": ("EASY++", "last_two"),
    "sa_easy": ("`sa_easy` by ADEPT", "adept"),
}
PREDICTORS = {
    "adept": "ADEPT",
    "consensus": "consensus",
    "regression": "regression",
    "universal_scalability": "universal scalability",
    "amdahl": "Amdahl",
    "oracle": "oracle",
}


def windows(log: str) -> np.ndarray:
    """Return which replications are windows of their own; the others draw weeks again."""
    begins = rule(log, "easy", "user_estimate")["window_begin"]
    return np.array([begin is not None for begin in begins])


def rule(log: str, policy: str, predictor: str) -> Row:
    """Return the row of a policy with a predictor on a log."""
    return one(data("logs")["rows"], log=log, policy=policy, predictor=predictor)


def response(log: str, policy: str, predictor: str) -> np.ndarray:
    """Return the mean response of each window in order of time, seconds."""
    begins = np.array(rule(log, "easy", "user_estimate")["window_begin"], float)
    return figures(rule(log, policy, predictor))[windows(log)][np.argsort(begins[windows(log)])]


def family() -> tuple[list[tuple[str, str]], Family]:
    """Return log and policy of all comparisons with EASY, and the comparisons, read together."""
    logs = dict.fromkeys(row["log"] for row in data("logs")["rows"])
    keys = [(log, policy) for log in logs for policy in RULES]
    ratios = [
        log_ratios(response(log, policy, RULES[policy][1]), response(log, "easy", "user_estimate"))
        for log, policy in keys
    ]
    return keys, compare(ratios, ordered=True, jobs=[log for log, _ in keys])


@table("logs/rules")
def logs_rules() -> list[str]:
    keys, found = family()
    told = {key: made.change for key, made in zip(keys, found.comparisons, strict=True)}
    rows = []
    for log in dict.fromkeys(name for name, _ in keys):
        easy = rule(log, "easy", "user_estimate")
        own = windows(log)
        unsteady = sum(s is False for s, kept in zip(easy["steady"], own, strict=True) if kept)
        molded = np.array(rule(log, "sa_easy", "adept")["molded_jobs"], float)[own].sum()
        share = molded / (data("logs")["jobs"] * own.sum())
        cells = [percent(told[log, policy]) for policy in RULES]
        rows.append([log, str(own.sum()), str(unsteady), *cells, f"{100 * share:.1f} %"])
    head = ["log", "windows", "unsteady", *(name for name, _ in RULES.values()), "jobs molded"]
    return lines(head, rows)


@table("logs/predictors")
def logs_predictors() -> list[str]:
    rows = []
    for log in dict.fromkeys(r["log"] for r in data("logs")["rows"] if r["predictor"] == "oracle"):
        easy, best = response(log, "easy", "user_estimate"), response(log, "sa_easy", "oracle")
        gain = compare([log_ratios(best, easy)], ordered=True).comparisons[0]
        for name, shown in PREDICTORS.items():
            own = response(log, "sa_easy", name)
            runtimes = compare([log_ratios(response(log, "easy", name), easy)], ordered=True)
            molding = compare([log_ratios(own, easy)], ordered=True)
            share = share_of_gain(own, best, easy)
            bounded = gain.certain and np.isfinite([share.low, share.high]).all()
            changes = [percent(each.comparisons[0].change) for each in (runtimes, molding)]
            kept = "" if name == "oracle" else percent(share) if bounded else "not told"
            rows.append([log, shown, *changes, kept])
    return lines(["log", "predictor", "EASY", "`sa_easy`", "share of the oracle's gain"], rows, 2)
