"""Total against separate against focused regression on measured curves.

python -m scripts.study_regression FOLDER [--out TABLE.csv]

FOLDER holds the measured scaling curves (a CSV a source, columns application,
problem, size, nprocs, runtime_s, comp_s, comm_s). Curves of one application that
differ in problem size alone are pooled; runs on more than a half or a quarter of
the largest count are left out of training and predicted.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from predictors.errors import PredictorError
from predictors.evaluation import source_weights, weighted_quantile
from predictors.focused import FocusedRegression
from predictors.regression import LogLogRegression

SIZE_WORDS = re.compile(r"\bne\d+\b|\d+\^[23]|n=\d+|\b\d+x\d+, \d+ iterations")
RENAMED = {"runtime_s": "runtime", "comp_s": "computation", "comm_s": "communication"}
COLUMNS = ["nprocs", "size", "runtime", "computation", "communication"]
HELD_OUT = {"half": 2.0, "quarter": 4.0}
TOLERANCE = 0.3


def groups(folder: Path) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield source, group and runs (medians of repeats) of curves that can be pooled."""
    for path in sorted(folder.glob("*.csv")):
        runs = pd.read_csv(path).rename(columns=RENAMED)
        runs["group"] = runs["problem"].str.replace(SIZE_WORDS, "*", regex=True)
        for name, rows in runs.groupby("group"):
            medians = rows.groupby(["nprocs", "size"], as_index=False)[COLUMNS[2:]].median()
            yield path.stem, str(name), medians.dropna(axis=1, how="all")


def focused_errors(train: pd.DataFrame, held: pd.DataFrame, tolerance: float) -> np.ndarray:
    """Return relative errors of one focused model a held-out run.

    Its focal time is what the complete fit predicts for that run, as in the simulator.
    """
    complete = FocusedRegression().fit(train)
    errors = []
    for _, run in held.iterrows():
        inputs = {"size": run["size"]} if "size" in complete.model_.inputs else {}
        focal_time = float(complete.predict(run["nprocs"], **inputs))
        model = FocusedRegression(focal_time=focal_time, tolerance=tolerance).fit(train)
        inputs = {name: run[name] for name in model.model_.inputs}
        errors.append(float(model.predict(run["nprocs"], **inputs)) / run["runtime"] - 1.0)
    return np.abs(errors)


def regression_errors(train: pd.DataFrame, held: pd.DataFrame, split: str) -> np.ndarray:
    """Return relative errors of a log-log regression on the held-out runs."""
    model = LogLogRegression(split=split).fit(train)
    inputs = {name: held[name].to_numpy() for name in model.model_.inputs}
    predicted = model.predict(held["nprocs"].to_numpy(dtype=float), **inputs)
    return np.abs(predicted / held["runtime"].to_numpy() - 1.0)


def study(folder: Path) -> pd.DataFrame:
    """Return a row a held-out run and method, with its relative error."""
    rows = []
    for source, group, runs in groups(folder):
        for held_out, factor in HELD_OUT.items():
            top = runs["nprocs"] > runs["nprocs"].max() / factor
            train, held = runs[~top], runs[top]
            methods = {
                "total": lambda t=train, h=held: regression_errors(t, h, "total"),
                "rules": lambda t=train, h=held: regression_errors(t, h, "auto"),
                "separate": lambda t=train, h=held: regression_errors(t, h, "separate"),
                "focused": lambda t=train, h=held: focused_errors(t, h, TOLERANCE),
            }
            for method, errors in methods.items():
                try:
                    found = errors()
                except PredictorError:
                    continue
                sizes = train["size"].nunique()
                rows += [(source, group, sizes, held_out, method, error) for error in found]
    names = ["source", "group", "sizes", "held_out", "method", "error"]
    return pd.DataFrame(rows, columns=names)


def medians(errors: pd.DataFrame) -> pd.DataFrame:
    """Return the median error (percent) of each group and method."""
    table = errors.pivot_table(
        index=["source", "group"], columns=["held_out", "method"], values="error", aggfunc="median"
    )
    return 100.0 * table


def answered_by_all(errors: pd.DataFrame, methods: list[str]) -> pd.DataFrame:
    """Keep the runs of groups that every one of the methods answered."""
    keys = ["source", "group", "held_out"]
    chosen = errors[errors["method"].isin(methods)]
    count = chosen.groupby(keys)["method"].transform("nunique")
    return chosen[count == len(methods)]


def overall(errors: pd.DataFrame) -> pd.DataFrame:
    """Return file-weighted medians and 90th percentiles, in percent.

    Over groups with several sizes, and over groups with split times.
    """
    several = errors[errors["sizes"] > 1]
    wheres = {
        "several sizes": answered_by_all(several, ["total", "focused"]),
        "split times": answered_by_all(errors, ["total", "rules", "separate", "focused"]),
        "both": answered_by_all(several, ["total", "rules", "separate", "focused"]),
    }
    rows = []
    for where, found in wheres.items():
        for (held_out, method), part in found.groupby(["held_out", "method"]):
            if where == "several sizes" and method not in ("total", "focused"):
                continue
            weights = source_weights(part["source"].tolist())
            levels = [100 * weighted_quantile(part["error"], weights, q) for q in (0.5, 0.9)]
            files = part["source"].nunique()
            rows.append((where, held_out, method, files, len(part), *levels))
    names = ["where", "left out", "method", "files", "runs", "median", "p90"]
    return pd.DataFrame(rows, columns=names)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    errors = study(arguments.folder)
    print(medians(errors).round(1).to_string(na_rep="-"))
    print(overall(errors).round(1).to_string(index=False))
    if arguments.out:
        errors.to_csv(arguments.out, index=False)


if __name__ == "__main__":
    main()
