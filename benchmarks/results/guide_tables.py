"""Tables of single pages: the two logs, the papers, comparisons, eight kinds of curves."""

import math

import pandas as pd

from benchmarks import kept_by_beliefs
from benchmarks.results.regions import data, lines, mean, table
from benchmarks.sage_errors import PRINTED


def percent(value: float) -> str:
    """Return a share in percent, with a true minus."""
    return f"{100 * value:.1f} %".replace("-", "−")


def change_of(row: pd.Series) -> str:
    """Return a change with its interval, or that its replications are identical."""
    if pd.isna(row["change_low"]):
        return f"{percent(row['change'])}, identical"
    return f"{percent(row['change'])} [{percent(row['change_low'])}, {percent(row['change_high'])}]"


def differences(name: str) -> pd.DataFrame:
    """Return differences of the tutorial, best first."""
    found = pd.DataFrame(data("tutorial")[name])
    numbers = ["change", "change_low", "change_high", "p_corrected"]
    found[numbers] = found[numbers].astype(float)
    return found.sort_values("change", kind="stable")


def changes(name: str) -> list[str]:
    """Return the table of changes against EASY by users' estimates."""
    rows = []
    for _, row in differences(name).iterrows():
        p = "" if pd.isna(row["p_corrected"]) else f"{row['p_corrected']:.3f}"
        rows.append((f"{row['policy']}, {row['predictor']}", change_of(row), p))
    return lines(("run", "against easy, user_estimate", "p, corrected"), rows)


def molding(name: str) -> list[str]:
    """Return what `sa` changes against conservative backfilling with the same predictor."""
    found = differences(name)
    mine = found[(found["policy"] == "sa") & (found["reference"].str.startswith("conservative"))]
    rows = [(f"sa, {row['predictor']}", row["reference"], change_of(row))
            for _, row in mine.iterrows()]  # fmt: skip
    return lines(("run", "against", "change"), rows, 2)


for _name, _maker in (
    ("slurm", changes), ("slurm_molding", molding), ("slurm_alone", changes),
    ("sdsc", changes), ("sdsc_molding", molding),
):  # fmt: skip
    table(f"tutorial/{_name}")(lambda name=_name, maker=_maker: maker(name))


def rational_figure(length: str, **where: str) -> str:
    """Return a mean error over seeds with its 95 % interval, of the first case that matches."""
    case = where.pop("case")
    for row in data("rational")["rows"]:
        mine = row["case"].startswith(case) and row["runs"] in (length, "any")
        if mine and all(row[key] == value for key, value in where.items()):
            return mean(row, "error", digits=1)
    raise LookupError(f"no row has {case}, {length}, {where}")


MEASURED = {"model": "rational", "method": "nnls", "load": "measured"}
LEAST, EFFECTIVE = {"form": "min_avg_avail"}, {"form": "effective"}
COLUMNS = {
    "size alone": MEASURED | LEAST | {"model": "size alone"},
    "least average, measured": MEASURED | LEAST,
    "effective, measured": MEASURED | EFFECTIVE,
    "effective, forecast": MEASURED | EFFECTIVE | {"load": "forecast"},
    "plain least squares": MEASURED | EFFECTIVE | {"method": "ols"},
}


@table("papers/rational_all")
def rational() -> list[str]:
    """Return errors of the rational polynomial on simulated runs of its paper's experiments."""
    asked = dict.fromkeys(
        (row["case"], row["runs"], row["paper"]) for row in data("rational")["rows"]
    )
    rows = [
        (case, runs, *(rational_figure(runs, case=case, **one) for one in COLUMNS.values()), paper)
        for case, runs, paper in asked
    ]
    return lines(("experiment", "runs", *COLUMNS, "paper"), rows, 2)


EIGEN = "eigenvalue, 8"
FIGURES = (
    ("Figure 1", "eigenvalue, 4 processors, constant load", "18", {"case": "eigenvalue, 4"}),
    ("Figure 2", "eigenvalue, 8 processors: rational", "11.86", {"case": EIGEN}),
    ("Figure 2", "size alone", "16.42", {"case": EIGEN, "model": "size alone"}),
    ("Figure 2", "type 1, equation (7)", "20.15", {"case": EIGEN, "model": "type 1"}),
    ("Figure 2", "type 2, equation (8)", "13.84", {"case": EIGEN, "model": "type 2"}),
    ("Figure 3", "eigenvalue, 32 processors, per node", "15", {"case": "eigenvalue, 32"}),
    ("Figure 4", "conjugate gradient, 8 processors", "7", {"case": "conjugate"}),
    ("Figure 5", "FFT, 32 processors", "11", {"case": "FFT"}),
    ("–", "ScaLAPACK's model, times of the idle machine, 8 processors", "a curve far off",
     {"case": EIGEN, "model": "analytical", "method": "known"}),
    ("–", "the same, fitted times", "–",
     {"case": EIGEN, "model": "analytical", "method": "fitted"}),
)  # fmt: skip
"""What the paper prints of each experiment, and which rows are ours."""


@table("papers/rational")
def papers_rational() -> list[str]:
    """Return mean errors of the paper's figures, printed and ours."""
    rows = []
    for figure, what, printed, where in FIGURES:
        found = [
            rational_figure(length, **(MEASURED | form | where))
            for form in (LEAST, EFFECTIVE)
            for length in ("short", "medium")
        ]
        shown = [found[0], *("the same" if one in found[: place + 1] else one
                             for place, one in enumerate(found[1:]))]  # fmt: skip
        rows.append((figure, what, printed, *shown))
    head = ["figure", "what", "printed", "least average, 2 min", "10 min", "effective, 2 min",
            "10 min"]  # fmt: skip
    return lines(head, rows, 2)


def small(value: float) -> str:
    """Return an error in percent with two digits.

    Examples
    --------
    >>> [small(value) for value in (102.2, 4.06, 0.0004, 1e-7)]
    ['102', '4.1', '0.0004', '0']
    """
    if value < 5e-5:
        return "0"
    return f"{value:.0f}" if value >= 10 else f"{value:.{1 - math.floor(math.log10(value))}f}"


@table("papers/figure_4")
def papers_figure_4() -> list[str]:
    """Return the largest error of each experiment by method, of both sets, and seconds."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in data("figure_4")["rows"]:
        method = row["method"].replace("sigma", "σ").replace("1000", "1,000")
        name = row["set"].replace("sigma", "σ") + ", %"
        cells = found.setdefault(method, {"seconds": []})
        cells[name] = [*map(small, row["errors"])]
        cells["seconds"].append(f"{row['seconds']:.1g}")
    heads = [*next(iter(found.values()))]
    rows = [(method, *(", ".join(cells[head]) for head in heads[1:]), ", ".join(cells["seconds"]))
            for method, cells in found.items()]  # fmt: skip
    return lines(("method", *heads[1:], "seconds"), rows, 4)


def cycles(machine: str) -> list[str]:
    """Return mean errors of the next cycle's time by processors, in percent, printed and ours."""
    decks = ("timing_a", "timing_b", "timing_c")
    heads = [f"{deck} {mode}" for deck in decks for mode in ("online", "offline")]
    rows = []
    mine = [row for row in data("cycles")["rows"] if row["machine"] == machine]
    for row, others in zip(mine, PRINTED[machine].tolist(), strict=True):
        cells = [f"{other:g} / {own:.1f}" for other, own in zip(others, row["errors"], strict=True)]
        rows.append((row["processors"], *cells))
    return lines(("processors", *heads), rows)


for _machine in PRINTED:
    table(f"papers/{_machine}")(lambda machine=_machine: cycles(machine))


@table("eight_curves/all")
def eight_curves() -> list[str]:
    """Return what the default moldable rule gains, a row a predictor, size and load."""
    return lines(kept_by_beliefs.HEADS, list(kept_by_beliefs.shown(data("eight_curves")["rows"])))


@table("eight_curves/gate")
def eight_curves_gate() -> list[str]:
    rows = kept_by_beliefs.gate(data("eight_curves")["rows"])
    return lines(["predictor", "load", "runs", "gain with the gate"], rows)


@table("comparisons/coverage")
def coverage() -> list[str]:
    """Return how often intervals cover, a column a number of pairs."""
    shown = [row for row in data("comparisons")["rows"] if "shares" in row]
    rows = [(row["differences"], *(f"{100 * s:.1f} %" for s in row["shares"])) for row in shown]
    return lines(("differences", "10 pairs", "20", "40"), rows)


@table("comparisons/equals")
def equals() -> list[str]:
    """Return in how many tables of equals any is called better."""
    row = data("equals")
    kinds = ("date", "tables", "rows", "pairs", "false_better", "false_better_or_worse")
    head = [kind.replace("_", " ") for kind in kinds]
    return lines(tuple(head), [tuple(row[kind] for kind in kinds)])


@table("comparisons/steady")
def steadiness() -> list[str]:
    """Return how many runs do not settle, a row a world and a length, a column a load."""
    shown = [row for row in data("comparisons")["rows"] if "unsteady" in row]
    loads = sorted({row["load"] for row in shown})
    found = {(r["world"], r["jobs"], r["load"]): f"{100 * r['unsteady']:.1f} %" for r in shown}
    kinds = dict.fromkeys((row["world"], row["jobs"], row["runs"]) for row in shown)
    rows = [
        (world, f"{jobs:,}", runs, *(found.get((world, jobs, load), "") for load in loads))
        for world, jobs, runs in kinds
    ]
    return lines(("world", "jobs", "runs", *(f"load {load:g}" for load in loads)), rows)
