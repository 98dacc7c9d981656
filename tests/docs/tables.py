"""Write the tables of guide and methods from their data: python -m tests.docs.tables.

A table stands in a page between ``<!-- NAME -->`` and ``<!-- /NAME -->``.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from tests.docs.reference import table

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS = DOCS / "results"
TUTORIAL = RESULTS / "tutorial"


def percent(value: float) -> str:
    """Return a share in percent, with a true minus."""
    return f"{100 * value:.1f} %".replace("-", "−")


def change_of(row: pd.Series) -> str:
    """Return a change with its interval, or that its replications are identical."""
    if pd.isna(row["change_low"]):
        return f"{percent(row['change'])}, identical"
    return f"{percent(row['change'])} [{percent(row['change_low'])}, {percent(row['change_high'])}]"


def differences(name: str, best_first: bool = True) -> pd.DataFrame:
    """Return a file of differences of the tutorial."""
    found = pd.read_csv(TUTORIAL / f"{name}.csv")
    return found.sort_values("change", kind="stable") if best_first else found


def changes(name: str) -> Iterator[str]:
    """Yield the table of changes against EASY by users' estimates."""
    rows = []
    for _, row in differences(name).iterrows():
        p = "" if pd.isna(row["p_corrected"]) else f"{row['p_corrected']:.3f}"
        rows.append((f"{row['policy']}, {row['predictor']}", change_of(row), p))
    yield from table(("run", "against easy, user_estimate", "p, corrected"), rows)


def molding(name: str) -> Iterator[str]:
    """Yield what `sa` changes against conservative backfilling with the same predictor."""
    found = differences(name)
    mine = found[(found["policy"] == "sa") & (found["reference"].str.startswith("conservative"))]
    rows = [(f"sa, {row['predictor']}", row["reference"], change_of(row))
            for _, row in mine.iterrows()]  # fmt: skip
    yield from table(("run", "against", "change"), rows)


def accuracy(*methods: str) -> Iterator[str]:
    """Yield errors on measured curves of some methods, from three and four counts."""
    rows = json.loads((RESULTS / "accuracy.json").read_text(encoding="utf-8"))["rows"]
    cells: dict[str, list[str]] = {method: [] for method in methods}
    for row in rows:
        if row["method"] in cells and row["counts"] == "3 and 4":
            median, tail = f"{row['median']:.1f} %", f"{row['tail']:.0f} %"
            cells[row["method"]].append(f"{median}, {tail}, {row['held']:.0f} %")
    heads = ("method", "between the counts", "1.5 to 2.1 times beyond", "3 to 4.2 times beyond")
    yield from table(heads, [(method, *found) for method, found in cells.items()])


def rational() -> Iterator[str]:
    """Yield errors of the rational polynomial on simulated runs of its paper's experiments."""
    data = json.loads((RESULTS / "methods" / "rational.json").read_text(encoding="utf-8"))
    heads = [name for name in data["rows"][0] if name not in ("case", "runs", "paper")]
    rows = [
        (one["case"], one["runs"], *(f"{mean} ± {half}" for mean, half in map(one.get, heads)),
         one["paper"])
        for one in data["rows"]
    ]  # fmt: skip
    yield from table(("experiment", "runs", *heads, "paper"), rows)


def cycles(machine: str) -> Iterator[str]:
    """Yield mean errors of the next cycle's time by processors, in percent."""
    data = json.loads((RESULTS / "methods" / "cycles.json").read_text(encoding="utf-8"))
    decks = ("timing_a", "timing_b", "timing_c")
    heads = [f"{deck} {mode}" for deck in decks for mode in ("online", "offline")]
    counts = ("1", "2", "4", "8", "16")
    rows = [
        (n, *(str(e) for e in errors))
        for n, errors in zip(counts, data["rows"][machine], strict=True)
    ]
    yield from table(("processors", *heads), rows)


REGIONS: dict[str, dict[str, Callable[[], Iterator[str]]]] = {
    "guide/tutorial.md": {
        "slurm": lambda: changes("slurm"),
        "slurm_molding": lambda: molding("slurm_molding"),
        "slurm_alone": lambda: changes("slurm_alone"),
        "sdsc": lambda: changes("sdsc"),
        "sdsc_molding": lambda: molding("sdsc_molding"),
    },
    "methods/adept.md": {
        "accuracy": lambda: accuracy("ADEPT", "Amdahl", "Gaussian process", "consensus")
    },
    "methods/regression.md": {
        "accuracy": lambda: accuracy("log-log linear", "log-log quadratic", "ADEPT", "consensus")
    },
    "methods/consensus.md": {
        "accuracy": lambda: accuracy(
            *("consensus", "Amdahl", "universal scalability", "log-log linear"),
            *("log-log quadratic", "ADEPT", "Gaussian process"),
        )
    },
    "methods/rational.md": {"errors": rational},
    "methods/cycles.md": {
        "alphaserver": lambda: cycles("alphaserver"),
        "itanium2": lambda: cycles("itanium2"),
    },
}


def filled(page: str, text: str) -> str:
    """Return a page with its tables as the data have them; indented as their marks are."""
    for name, lines in REGIONS[page].items():

        def put(mark: re.Match[str], lines: Any = lines, name: str = name) -> str:
            told = [f"{mark[1]}{line}".rstrip() for line in lines()]
            body = "\n".join(["", *told])
            return f"{mark[1]}<!-- {name} -->\n{body}\n{mark[1]}<!-- /{name} -->"

        pattern = rf"^( *)<!-- {name} -->$.*?<!-- /{name} -->$"
        text, found = re.subn(pattern, put, text, flags=re.M | re.S)
        if found != 1:
            raise ValueError(f"{page}: {found} places for {name}, expected one")
    return text


def main() -> None:
    """Fill in all tables."""
    for page in REGIONS:
        path = DOCS / page
        path.write_text(filled(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
