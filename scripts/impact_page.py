"""Tables and figures of `scripts.study_impact`, as Markdown.

Usage: python -m scripts.impact_page NAME=FILE.jsonl [NAME=FILE.jsonl ...] [--images FOLDER]
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scripts.study_impact import CLASSES, COUNTS, LEARNED, LOADS, PARTS, POLICIES, SPREADS, STEADY
from sim.report.answer_tables import percent
from sim.statistics.intervals import Interval, t_interval
from sim.statistics.load_curves import LoadCurve, load_curve
from sim.statistics.paired import compare_paired, holm, relative_change, share_of_gain
from sim.statistics.regret import shares_of_cause

RESPONSE = "mean_response_time"
HOUR = 3600.0
SHOWN = (-200, 150)
"""Shares of the gain that the figure shows, percent; what lies below is written at its edge."""
TRUTHS = {"measured": "measured curves", "model": "model curves"}


@dataclass(frozen=True)
class Results:
    """All simulations of one workload."""

    name: str
    frame: pd.DataFrame

    def values(
        self,
        part: str,
        truth: str,
        key: str,
        *,
        policy: str = "sa_easy",
        predictor: str = "oracle",
        jobs: str = "",
        beliefs: str = "",
    ) -> np.ndarray:
        """Return a figure by replication; NaN where it is undefined."""
        frame = self.frame
        chosen = frame[
            (frame["part"] == part) & (frame["truth"] == truth) & (frame["policy"] == policy)
            & (frame["predictor"] == predictor) & (frame["jobs_setting"] == jobs)
            & (frame["beliefs"] == beliefs)
        ].sort_values("replication")  # fmt: skip
        return chosen[key].to_numpy(float)

    def has(self, part: str, truth: str) -> bool:
        """Return whether a part of the study was carried out."""
        return bool(((self.frame["part"] == part) & (self.frame["truth"] == truth)).any())

    def replications(self, part: str, truth: str) -> int:
        """Return how many replications there are of a part."""
        frame = self.frame
        mine = (frame["part"] == part) & (frame["truth"] == truth)
        return int(frame.loc[mine, "replication"].nunique())

    def easy(self, part: str, truth: str, key: str = RESPONSE, jobs: str = "") -> np.ndarray:
        """Return a figure of rigid EASY by users' estimates, by replication."""
        return self.values(part, truth, key, policy="easy", predictor="user_estimate", jobs=jobs)


def read(argument: str) -> Results:
    """Return the results of NAME=FILE[,FILE ...]."""
    name, _, paths = argument.partition("=")
    frames = [pd.read_json(path, lines=True) for path in paths.split(",")]
    return Results(name, whole(pd.concat(frames, ignore_index=True)))


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the replications of each part that have all of its cases."""
    kept = []
    for (part, truth, _), done in frame.groupby(["part", "truth", "replication"]):
        if {case.key for case in PARTS[str(part)](str(truth))} <= set(done["case"]):
            kept.append(done)
    return pd.concat(kept, ignore_index=True) if kept else frame.iloc[:0]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def hours(values: np.ndarray) -> str:
    found = t_interval(values / HOUR)
    return f"{found.mean:.2f} ± {found.half:.2f}"


def mean_percent(values: np.ndarray, digits: int = 0) -> str:
    return f"{100 * np.nanmean(values):.{digits}f} %" if np.isfinite(values).any() else "–"


def predictors() -> list[tuple[str, str, str, str]]:
    """Return (label, policy, predictor, beliefs) of the rows of the main table."""
    noisy = [
        (f"oracle, errors of {spread:g}", "sa_easy", "noisy_oracle", f"predictor.spread={spread}")
        for spread in SPREADS
    ]
    learned = [(name, "sa_easy", name, "") for name in LEARNED]
    rigid = ("rigid, oracle's estimates", "easy", "oracle", "")
    return [("oracle", "sa_easy", "oracle", ""), *noisy, *learned, rigid]


def main_table(results: Results, truth: str) -> str:
    """Tabulate what each predictor keeps under the main policy."""
    part = "predictors"
    easy, best = results.easy(part, truth), results.values(part, truth, RESPONSE)
    oracle_seconds = results.values(part, truth, "seconds").mean()
    oracle_area = results.values(part, truth, "held_area")
    found = []
    for label, policy, predictor, beliefs in predictors():
        asked: dict[str, Any] = {"policy": policy, "predictor": predictor, "beliefs": beliefs}
        own = results.values(part, truth, RESPONSE, **asked)
        errors = results.values(part, truth, "prediction_median_error", **asked)
        seconds = results.values(part, truth, "seconds", **asked).mean()
        area = results.values(part, truth, "held_area", **asked) / oracle_area
        found.append((label, own, errors, area, seconds))
    compared = [compare_paired(own, easy) for _, own, *_ in found]
    corrected = holm([one.p_value for one in compared])
    held = results.easy(part, truth, "held_area") / oracle_area
    rows = [
        ["rigid EASY, users' estimates", hours(easy), "", "", "0 %", "", mean_percent(held), ""]
    ]
    for (label, own, errors, area, seconds), one, p in zip(found, compared, corrected, strict=True):
        kept = "100 %" if label == "oracle" else percent(share_of_gain(own, best, easy))
        rows.append(
            [label, hours(own), percent(one.change), f"{p:.3f}" if p >= 0.001 else "< 0.001",
             kept, mean_percent(errors), mean_percent(area), f"{seconds - oracle_seconds:+.1f} s"]
        )  # fmt: skip
    head = ["predictor", "mean response (h)", "change [95 %]", "p (Holm)",
            "oracle's gain kept [95 %]", "median error", "held area", "real time"]  # fmt: skip
    return markdown(head, rows)


def policy_table(results: Results, truth: str) -> str:
    """Tabulate gain and share kept under each policy, each against its own oracle."""
    part = "predictors"
    easy = results.easy(part, truth)
    chosen = [(f"errors of {s:g}", "noisy_oracle", f"predictor.spread={s}") for s in SPREADS[1:]]
    chosen += [(name, name, "") for name in ("adept", "consensus", "amdahl")]
    rows = []
    for policy in POLICIES:
        best = results.values(part, truth, RESPONSE, policy=policy)
        row = [policy, percent(relative_change(best, easy))]
        for _, predictor, beliefs in chosen:
            own = results.values(
                part, truth, RESPONSE, policy=policy, predictor=predictor, beliefs=beliefs
            )
            row.append(percent(share_of_gain(own, best, easy)))
        rows.append(row)
    return markdown(["policy", "oracle against EASY", *(name for name, _, _ in chosen)], rows)


SETTINGS = {
    "workload.applications=10": "10 applications",
    "workload.applications=50": "50 applications (default)",
    "workload.applications=200": "200 applications",
    "workload.applications=1000": "1,000 applications",
    "workload.size_noise=0.0": "sizes seen exactly",
    "workload.size_noise=0.3": "sizes seen within 0.3",
    "workload.size_noise=1.0": "sizes seen within 1.0",
    "workload.sizes=1": "1 size of each, known",
    "workload.sizes=5": "5 sizes of each, known",
    "workload.sizes=5 workload.size=hidden": "5 sizes of each, label only",
    "workload.size=hidden": "no sizes repeat, hidden",
}


def repetition_table(results: Results, truth: str) -> str:
    """Tabulate what is kept by how much repeats."""
    part, names = "repetition", ("adept", "rational")
    rows = []
    for jobs, label in SETTINGS.items():
        easy = results.easy(part, truth, jobs=jobs)
        best = results.values(part, truth, RESPONSE, policy=STEADY, jobs=jobs)
        row = [label, percent(relative_change(best, easy))]
        for name in names:
            asked = {"policy": STEADY, "predictor": name, "jobs": jobs}
            own = results.values(part, truth, RESPONSE, **asked)
            wrong = results.values(part, truth, "prediction_median_error", **asked)
            row.append(f"{percent(share_of_gain(own, best, easy))}, {mean_percent(wrong)}")
        rows.append(row)
    return markdown(["what repeats", "oracle against EASY", *names], rows)


def calibration_table(results: Results, truth: str) -> str:
    """Tabulate what calibration brings and costs, in simulated and in real time."""
    part = "calibration"
    easy, best = results.easy(part, truth), results.values(part, truth, RESPONSE)
    span, seconds = (results.values(part, truth, key) for key in ("makespan", "seconds"))
    rows = []
    for predictor in ("adept", "consensus"):
        for runs, charge in ((0, "false"), (3, "false"), (3, "true"), (6, "false"), (6, "true")):
            beliefs = f"predictor.calibration={runs} predictor.charge={charge}"
            asked = {"predictor": predictor, "beliefs": beliefs}
            own = results.values(part, truth, RESPONSE, **asked)
            area = results.values(part, truth, "calibration_area", **asked)
            held = results.values(part, truth, "held_area", **asked)
            paid = " charged" if charge == "true" else " free"
            kind = f"{runs} runs{paid}" if runs else "cold start"
            spans = results.values(part, truth, "makespan", **asked)
            real = results.values(part, truth, "seconds", **asked) - seconds
            rows.append(
                [f"{predictor}, {kind}", hours(own), percent(share_of_gain(own, best, easy)),
                 mean_percent(area / held, 1), percent(relative_change(spans, span)),
                 mean_percent(results.values(part, truth, "share_fitted_starts", **asked)),
                 f"{real.mean():+.1f} s"]
            )  # fmt: skip
    head = ["predictor, calibration", "mean response (h)", "oracle's gain kept [95 %]",
            "calibration / held area", "makespan against oracle's", "starts on a fitted curve",
            "real time"]  # fmt: skip
    return markdown(head, rows)


CURVES = {
    "rigid EASY": ("easy", "user_estimate"),
    "sa_easy, oracle": ("sa_easy", "oracle"),
    "sa_easy, adept": ("sa_easy", "adept"),
    "iterative, oracle": ("iterative", "oracle"),
}


def curves(results: Results, truth: str) -> dict[str, LoadCurve]:
    """Return mean response in hours over load, up to saturation."""

    def at(policy: str, predictor: str, load: float) -> list[tuple[float, bool]]:
        asked = {"policy": policy, "predictor": predictor, "jobs": f"workload.load={load}"}
        full = results.values("load", truth, "saturated", **asked)
        response = results.values("load", truth, RESPONSE, **asked) / HOUR
        return [(float(v), bool(s)) for v, s in zip(response, full, strict=True)]

    return {
        label: load_curve(lambda load, who=who: at(*who, load), LOADS)  # type: ignore[misc]
        for label, who in CURVES.items()
    }


def load_table(results: Results, truth: str) -> str:
    """Tabulate load curves, and the change against rigid EASY where that is saturated too."""
    rows = []
    for label, curve in curves(results, truth).items():
        cells = {p.load: f"{p.interval.mean:.2f} ± {p.interval.half:.2f}" for p in curve.points}
        rows.append([label, *(cells.get(load, "–") for load in LOADS), curve.says()])
    return markdown(["mean response (h)", *(f"{load:g}" for load in LOADS), ""], rows)


def loss_table(results: Results, truth: str) -> str:
    """Tabulate who gains and who loses by molding, by class of job."""
    part = "predictors"
    rows = []
    for name in CLASSES:
        key = f"{name}_mean_response_time"
        easy = results.easy(part, truth, key)
        share = results.easy(part, truth, f"{name}_jobs") / results.easy(part, truth, "jobs")
        row = [name.replace("_", ", "), mean_percent(share)]
        for predictor in ("oracle", "adept", "regression"):
            own = results.values(part, truth, key, predictor=predictor)
            row.append(percent(relative_change(own, easy)))
        row.append(_parts_of(results, truth, name))
        rows.append(row)
    head = ["jobs (request)", "share", "oracle", "adept", "regression",
            "adept: waiting, running (s a job)"]  # fmt: skip
    return markdown(head, rows)


def _parts_of(results: Results, truth: str, name: str) -> str:
    frame = results.frame
    chosen = frame[
        (frame["part"] == "predictors") & (frame["truth"] == truth)
        & (frame["policy"] == "sa_easy") & (frame["predictor"] == "adept")
    ]  # fmt: skip
    parts = [
        one["class"][name] for one in chosen["against easy user_estimate"] if name in one["class"]
    ]
    mine = [(one["waiting"] / one["jobs"], one["running"] / one["jobs"]) for one in parts]
    waiting, running = np.mean(mine, axis=0)
    return f"{waiting:+,.0f}, {running:+,.0f}"


def cause_table(results: Results, truth: str) -> str:
    """Tabulate whose errors cost how much of ADEPT's regret, from runs with errors mended."""
    part = "causes"
    oracle = results.values(part, truth, RESPONSE)
    best = results.values(part, truth, RESPONSE, predictor="repaired")
    whole = results.values(part, truth, RESPONSE, predictor="adept") - oracle
    regret = whole + oracle - best
    groups = [(name.replace("_", ", "), f"predictor.classes=[{name}]") for name in CLASSES]
    groups += [
        (f"counts {low} to {high}" if high < 2**31 else f"counts from {low} on",
         f"predictor.counts=[{low},{high}]") for low, high in COUNTS
    ]  # fmt: skip
    rows = [
        ["ADEPT against the oracle", percent_of(whole, oracle), "", ""],
        ["… by the policy's caution alone", percent_of(best - oracle, oracle), "", ""],
        ["… by all errors", percent_of(regret, oracle), "", ""],
    ]
    for some in (groups[: len(CLASSES)], groups[len(CLASSES) :]):
        mended, alone = (
            np.array([
                results.values(part, truth, RESPONSE, predictor="repaired",
                               beliefs=f"{group} predictor.invert={invert}") - best
                for _, group in some
            ])
            for invert in ("false", "true")
        )  # fmt: skip
        shares = [
            shares_of_cause(float(regret[k]), mended[:, k].tolist(), alone[:, k].tolist())
            for k in range(len(regret))
        ]
        for place, (label, _) in enumerate(some):
            caused = np.array([one[0][place] for one in shares])
            rows.append(
                [label, percent_of(caused, oracle), percent_of(regret - mended[place], oracle),
                 percent_of(alone[place], oracle)]
            )  # fmt: skip
        rest = np.array([one[1] for one in shares])
        rows.append(["… acting upon each other", percent_of(rest, oracle), "", ""])
    head = ["errors", "cost, % of the oracle's response", "saved by mending them", "cost alone"]
    return markdown(head, rows)


def percent_of(values: np.ndarray, whole: np.ndarray) -> str:
    found = t_interval(values / whole.mean())
    return percent(found)


def felt_table(results: Results, truth: str) -> str:
    """Tabulate who bears ADEPT's regret, by allocated processors and by choice."""
    frame = results.frame
    chosen = frame[
        (frame["part"] == "predictors") & (frame["truth"] == truth)
        & (frame["policy"] == "sa_easy") & (frame["predictor"] == "adept")
    ]["against sa_easy oracle"]  # fmt: skip
    whole = np.mean([sum(v["regret"] for v in one["class"].values()) for one in chosen])
    rows = [["all", "100 %", f"{whole:+,.0f}", "", "", ""]]
    for key in ("class", "count", "choice"):
        tables = [pd.DataFrame(one[key]).T for one in chosen]
        every = pd.concat(tables)
        sums = every[["jobs", "regret", "waiting", "running"]].groupby(level=0).sum() / len(tables)
        sums["error"] = every["median_error"].groupby(level=0).mean()
        for name, line in sums.sort_values("regret", ascending=False).iterrows():
            rows.append(
                [f"{key} {str(name).replace('_', ' ')}", f"{100 * line['jobs']:.0f} %",
                 f"{line['regret']:+,.0f}", f"{line['waiting']:+,.0f}", f"{line['running']:+,.0f}",
                 f"{100 * line['error']:.0f} %"]
            )  # fmt: skip
    head = ["jobs", "share", "regret (s)", "waiting (s)", "running (s)", "median error"]
    return markdown(head, rows)


def gain_figure(everything: Sequence[Results], path: Path) -> None:
    """Draw the share of the oracle's gain kept, a panel for each workload and truth."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(everything), len(TRUTHS), figsize=(9.5, 3.6 * len(everything)), sharex=True,
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    rows = predictors()[1:]
    for results, line in zip(everything, panels, strict=True):
        for (truth, title), axes in zip(TRUTHS.items(), line, strict=True):
            easy = results.easy("predictors", truth)
            best = results.values("predictors", truth, RESPONSE)
            for place, (_, policy, predictor, beliefs) in enumerate(rows):
                own = results.values(
                    "predictors", truth, RESPONSE, policy=policy, predictor=predictor,
                    beliefs=beliefs,
                )  # fmt: skip
                _whisker(axes, place, share_of_gain(own, best, easy), predictor)
            axes.axvline(100, color="#555555", linestyle="--", linewidth=1)
            axes.axvline(0, color="#555555", linewidth=1)
            axes.set_title(f"{results.name}, {title}", fontsize=10)
            axes.grid(axis="x", color="#dddddd", linewidth=0.7)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[:, 0]:
        axes.set_yticks(range(len(rows)), [label for label, *_ in rows], fontsize=8)
    panels[0][0].set_ylim(len(rows) - 0.5, -0.5)
    panels[0][0].set_xlim(*SHOWN)
    figure.supxlabel("share of the oracle's gain over rigid EASY (%), 95 % intervals", fontsize=9)
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


def _whisker(axes: Any, place: int, kept: Interval, predictor: str) -> None:
    colours = {"noisy_oracle": "#0072B2", "oracle": "#999999"}
    colour = colours.get(predictor, "#D55E00")
    low, high = (np.nan_to_num(100 * v, neginf=-1e4, posinf=1e4) for v in (kept.low, kept.high))
    axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
    if 100 * kept.mean < SHOWN[0]:
        axes.plot(SHOWN[0] + 3, place, "<", color=colour, markersize=6)
        text = f"{100 * kept.mean:.0f} %"
        axes.text(SHOWN[0] + 8, place - 0.12, text, fontsize=7.5, va="bottom", color=colour)
    else:
        axes.plot(100 * kept.mean, place, "o", color=colour, markersize=5)


def load_figure(everything: Sequence[Results], path: Path) -> None:
    """Draw load curves up to saturation, a panel for each workload."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        1, len(everything), figsize=(4.75 * len(everything), 4.2), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for results, axes in zip(everything, panels[0], strict=True):
        styles = zip("osD^", ("#000000", "#0072B2", "#D55E00", "#009E73"), strict=True)
        for (label, curve), (marker, colour) in zip(
            curves(results, "measured").items(), styles, strict=True
        ):
            points = curve.points
            stop = "" if curve.saturates_at is None else f" (saturated at {curve.saturates_at:g})"
            axes.errorbar(
                [p.load for p in points], [p.interval.mean for p in points],
                yerr=[p.interval.half for p in points], marker=marker, markersize=4.5,
                color=colour, capsize=2.5, linewidth=1.3, label=label + stop,
            )  # fmt: skip
        axes.set(xlabel="offered load", title=f"{results.name}, measured curves", yscale="log")
        axes.grid(color="#dddddd", linewidth=0.7)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(
            frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16)
        )
    panels[0][0].set_ylabel("mean response time (h)")
    figure.savefig(path, dpi=130, metadata={"Software": None})
    plt.close(figure)


TABLES = (
    ("What each predictor keeps", "predictors", main_table),
    ("Under other policies", "predictors", policy_table),
    ("Where molding loses", "predictors", loss_table),
    ("Who bears ADEPT's regret", "predictors", felt_table),
    ("Whose errors cause it", "causes", cause_table),
    ("What calibration costs", "calibration", calibration_table),
    ("How much must repeat", "repetition", repetition_table),
    ("Over load", "load", load_table),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables and draw the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("results", nargs="+", type=read, metavar="NAME=FILE")
    parser.add_argument("--images", type=Path)
    asked = parser.parse_args(arguments)
    for title, part, table in TABLES:
        for results in asked.results:
            for truth, curve in TRUTHS.items():
                if results.has(part, truth):
                    number = results.replications(part, truth)
                    print(f"### {title}: {results.name}, {curve}, {number} replications\n")
                    print(table(results, truth))
    if asked.images:
        gain_figure(asked.results, asked.images / "impact_gain.png")
        if all(results.has("load", "measured") for results in asked.results):
            load_figure(asked.results, asked.images / "impact_load.png")


if __name__ == "__main__":
    main()
