"""Tables of guide and methods: the tutorial's two logs, and the accuracy of each method."""

import json
from typing import Any

import pandas as pd

from benchmarks.results.regions import RESULTS, data, lines, table


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


def accuracy(*methods: str) -> list[str]:
    """Return errors on measured curves of some methods, from three and four counts."""
    cells: dict[str, list[str]] = {method: [] for method in methods}
    for row in data("accuracy")["rows"]:
        if row["method"] in cells and row["counts"] == "3 and 4":
            median, tail = f"{row['median']:.1f} %", f"{row['tail']:.0f} %"
            cells[row["method"]].append(f"{median}, {tail}, {row['held']:.0f} %")
    heads = ("method", "between the counts", "1.5 to 2.1 times beyond", "3 to 4.2 times beyond")
    return lines(heads, [(method, *found) for method, found in cells.items()])


CURVES = {
    "adept": ("ADEPT", "Amdahl", "consensus"),
    "regression": ("log-log linear", "log-log quadratic", "consensus"),
    "consensus": ("consensus", "Amdahl", "universal scalability", "log-log linear",
                  "log-log quadratic", "ADEPT"),
}  # fmt: skip
for _page, _methods in CURVES.items():
    table(f"methods/{_page}")(lambda methods=_methods: accuracy(*methods))


def method_data(name: str) -> Any:
    """Return what ``python -m tests.docs.method_tables`` wrote of a method."""
    return json.loads((RESULTS / "methods" / f"{name}.json").read_text(encoding="utf-8"))["rows"]


@table("methods/rational")
def rational() -> list[str]:
    """Return errors of the rational polynomial on simulated runs of its paper's experiments."""
    found = method_data("rational")
    heads = [name for name in found[0] if name not in ("case", "runs", "paper")]
    rows = [
        (one["case"], one["runs"], *(f"{mean} ± {half}" for mean, half in map(one.get, heads)),
         one["paper"])
        for one in found
    ]  # fmt: skip
    return lines(("experiment", "runs", *heads, "paper"), rows, 2)


def cycles(machine: str, beside: list[list[float]] | None = None) -> list[str]:
    """Return mean errors of the next cycle's time by processors, in percent; beside others."""
    decks = ("timing_a", "timing_b", "timing_c")
    heads = [f"{deck} {mode}" for deck in decks for mode in ("online", "offline")]
    found = method_data("cycles")[machine]
    if beside is not None:
        found = [
            [f"{other:g} / {own:.1f}" for other, own in zip(*each, strict=True)]
            for each in zip(beside, found, strict=True)
        ]
    rows = [(n, *errors) for n, errors in zip(("1", "2", "4", "8", "16"), found, strict=True)]
    return lines(("processors", *heads), rows)


for _machine in ("alphaserver", "itanium2"):
    table(f"methods/{_machine}")(lambda machine=_machine: cycles(machine))
    table(f"papers/{_machine}")(
        lambda machine=_machine: cycles(machine, data("papers")["printed"][machine])
    )
