"""How accurate ADEPT is: noiseless curves, 5 % noise, and measured scaling curves.

    MOLDSIM_DATA=FOLDER python -m scripts.study_adept [--quick] [--output FILE.md]

Prints the tables of docs/adept.md. The measured part needs FOLDER/scaling with
CSV files of columns problem, nprocs, runtime_s; without it that part is left out.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from predictors import Adept, Amdahl, LevenbergMarquardt, UniversalScalability
from predictors.base import FloatArray
from predictors.downey import normalised_time
from predictors.evaluation import (
    Case,
    bootstrap_interval,
    cases,
    read_curves,
    relative_errors,
    source_halves,
    source_weights,
    weighted_quantile,
)
from scripts.gaussian_process import gaussian_process

Predict = Callable[[FloatArray, FloatArray, float], float]


def loglog(degree: int) -> Predict:
    def predict(nprocs: FloatArray, runtime: FloatArray, target: float) -> float:
        fitted = np.polyfit(np.log(nprocs), np.log(runtime), min(degree, len(nprocs) - 1))
        return float(np.exp(np.polyval(fitted, np.log(target))))

    return predict


def model(
    make: Callable[[], Adept | Amdahl | UniversalScalability | LevenbergMarquardt],
) -> Predict:
    return lambda nprocs, runtime, target: float(
        make().fit_arrays(nprocs, runtime).predict(target).item()
    )


METHODS: dict[str, Predict] = {
    "ADEPT": model(Adept),
    "Amdahl": model(Amdahl),
    "universal scalability": model(UniversalScalability),
    "log-log linear": loglog(1),
    "log-log quadratic": loglog(2),
    "Gaussian process": gaussian_process,
}


def random_layout(rng: np.random.Generator) -> tuple[float, float, FloatArray]:
    """Draw A, sigma and four counts: two well before the first breakpoint, two beyond it."""
    A, sigma = float(np.exp(rng.uniform(np.log(4), np.log(256)))), float(rng.uniform(0, 2))
    breakpoint = A if sigma <= 1 else A + A * sigma - sigma
    while True:
        before = np.sort(rng.uniform(1, 0.85 * breakpoint, 2))
        beyond = np.sort(rng.uniform(1.15 * breakpoint, 2 * breakpoint, 2))
        if before[1] > 1.1 * before[0] and beyond[1] > 1.05 * beyond[0]:
            return A, sigma, np.concatenate([before, beyond])


def noiseless(count: int, seed: int = 1) -> str:
    """Recover random curves from four exact runtimes in random units."""
    rng = np.random.default_rng(seed)
    recovered = inside = warned = exact_floor = 0
    for _ in range(count):
        A, sigma, n = random_layout(rng)
        unit = float(np.exp(rng.uniform(-8, 8)))
        fitted = Adept().fit_arrays(n, unit * normalised_time(n, A, sigma))
        targets = np.geomspace(n[0], 4 * n[-1], 9)
        truth = unit * normalised_time(targets, A, sigma)
        exact_floor += fitted.floor_ == 0.0
        if np.abs(fitted.predict(targets) / truth - 1).max() <= 1e-3:
            recovered += 1
            continue
        low, high = fitted.predict_range(targets)
        inside += bool(((truth >= low * (1 - 1e-6)) & (truth <= high * (1 + 1e-6))).all())
        warned += any(remark.grade == "warning" for remark in fitted.reliability(targets))
    rest = count - recovered
    return (
        f"{count} noiseless curves: {recovered / count:.1%} within 0.1 % everywhere, floor 0 in "
        f"{exact_floor / count:.1%}; of the other {rest}, the truth in the range of {inside} "
        f"and a warning at {warned}.\n"
    )


def noisy_curves(
    count: int, seed: int, noise: float = 0.05
) -> Iterator[tuple[FloatArray, FloatArray, float, float]]:
    rng = np.random.default_rng(seed)
    n = np.array([4.0, 16, 32, 64])
    for _ in range(count):
        A, sigma = float(np.exp(rng.uniform(np.log(8), np.log(256)))), float(rng.uniform(0, 2))
        yield n, normalised_time(n, A, sigma) * np.exp(noise * rng.standard_normal(4)), A, sigma


def noise_errors(predict: Predict, count: int, seed: int) -> FloatArray:
    """Return relative errors at 128 and 256 under 5 % noise, shape (count, 2)."""
    return np.array(
        [
            [
                abs(predict(n, t, target) / float(normalised_time(target, A, sigma)) - 1)
                for target in (128.0, 256.0)
            ]
            for n, t, A, sigma in noisy_curves(count, seed)
        ]
    )


def noisy(count: int, seed: int = 1) -> str:
    """Tabulate median errors under 5 % noise, with bootstrap intervals."""
    lines = ["| method | median error at 128 (95 %) | at 256 (95 %) |", "| --- | --- | --- |"]
    for name in ("ADEPT", "Amdahl", "universal scalability", "log-log quadratic"):
        errors = noise_errors(METHODS[name], count, seed)
        cells = []
        for column in errors.T:
            low, high = bootstrap_interval(
                lambda drawn, column=column: float(np.median(column[drawn])), range(count)
            )
            cells.append(f"{np.median(column):.1%} ({low:.1%} to {high:.1%})")
        lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    return "\n".join(lines) + "\n"


def select(questions: list[Case], distance: str) -> np.ndarray:
    return np.array([case.distance == distance for case in questions])


def accuracy(questions: dict[int, list[Case]]) -> str:
    """Tabulate median and 90th percentile of every method, inputs and distance."""
    heads = [f"{k} counts, {d}" for k in questions for d in ("inside", "near", "far")]
    lines = ["| method | " + " | ".join(heads) + " |", "| --- " * (len(heads) + 1) + "|"]
    for name, predict in METHODS.items():
        cells = []
        for asked in questions.values():
            errors = relative_errors(asked, predict)
            for distance in ("inside", "near", "far"):
                chosen = select(asked, distance)
                weights = source_weights(
                    [c.source for c, x in zip(asked, chosen, strict=True) if x]
                )
                median, tail = (weighted_quantile(errors[chosen], weights, p) for p in (0.5, 0.9))
                cells.append(f"{median:.1%} / {tail:.0%}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def graded(asked: list[Case]) -> tuple[FloatArray, np.ndarray, np.ndarray]:
    """Return ADEPT's error, whether it warned, and whether its 80 % range held the truth."""
    errors, warned, held = [], [], []
    for case in asked:
        fitted = Adept().fit_arrays(case.nprocs, case.runtime)
        errors.append(abs(fitted.predict(case.target).item() / case.actual - 1))
        warned.append(any(r.grade != "note" for r in fitted.reliability(case.target)))
        low, high = fitted.predict_range(case.target)
        held.append(bool(low <= case.actual <= high))
    return np.array(errors), np.array(warned), np.array(held)


def separation(asked: list[Case]) -> str:
    """Tabulate what grades separate, on all files and on each half of them."""
    errors, warned, held = graded(asked)
    sources = np.array([case.source for case in asked])
    first, second = source_halves(sources)
    parts = {"all": set(sources), "chosen on": first, "reported on": second}
    lines = [
        "| files | distance | share without warning | median error without | with | ratio |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name, part in parts.items():
        for distance in ("near", "far"):
            here = select(asked, distance) & np.isin(sources, list(part))
            weights = source_weights(sources[here].tolist())
            warn, error = warned[here], errors[here]
            good = weighted_quantile(error[~warn], weights[~warn], 0.5)
            bad = weighted_quantile(error[warn], weights[warn], 0.5) if warn.any() else np.nan
            lines.append(
                f"| {name} | {distance} | {weights[~warn].sum():.0%} | {good:.1%} | {bad:.1%} "
                f"| {good / bad:.2f} |"
            )
    cover = []
    for distance in ("inside", "near", "far"):
        here = select(asked, distance)
        share = (source_weights(sources[here].tolist()) * held[here]).sum()
        cover.append(f"{distance} {share:.0%}")
    return "\n".join(lines) + f"\n\n80 % ranges hold the measured runtime: {', '.join(cover)}.\n"


def crossfitted_ranges(asked: list[Case], level: float = 0.8) -> str:
    """Say what ranges between observations hold if their growth is found on the other files."""
    inner = [case for case in asked if case.distance == "inside"]
    actual = np.array([case.actual for case in inner])
    sources = np.array([case.source for case in inner])
    away = np.array([np.abs(np.log2(case.target / case.nprocs)).min() for case in inner])
    ends, floor = np.empty((2, len(inner))), np.empty(len(inner))
    for place, case in enumerate(inner):
        fitted = Adept().fit_arrays(case.nprocs, case.runtime)
        ends[:, place] = [end.item() for end in fitted.predict_range(case.target, 1e-9)]
        floor[place] = fitted.floor_
    growths = np.arange(0.0, 0.4, 0.01)
    reach = ndtri(0.5 + 0.5 * level) * np.hypot(floor, growths[:, None] * away)
    held = (actual >= ends[0] * np.exp(-reach)) & (actual <= ends[1] * np.exp(reach))
    chosen, share = [], []
    for source in np.unique(sources):
        others = sources != source
        covered = held[:, others] @ source_weights(sources[others].tolist())
        best = int(np.argmax(covered >= level))
        chosen.append(growths[best])
        share.append(held[best, ~others].mean())
    return (
        f"With the growth of the range between observations found on the other files "
        f"({min(chosen):.2f} to {max(chosen):.2f} a doubling), {np.mean(share):.0%} inside.\n"
    )


def descent_failures(count: int, seed: int = 1) -> str:
    """Compare Levenberg-Marquardt from fixed starts with the exact search on exact data."""
    rng = np.random.default_rng(seed)
    starts = {"A = 50, sigma = 0.5": (50.0, 0.5), "A = 3000, sigma = 3000": (3000.0, 3000.0)}
    failed = dict.fromkeys([*starts, "ADEPT"], 0)
    for _ in range(count):
        A, sigma, n = random_layout(rng)
        t, target = normalised_time(n, A, sigma), 1.5 * n[-1]
        truth = float(normalised_time(target, A, sigma))
        methods = {k: LevenbergMarquardt(start=s) for k, s in starts.items()} | {"ADEPT": Adept()}
        for name, each in methods.items():
            predicted = each.fit_arrays(n, t).predict(target).item()
            failed[name] += abs(predicted / truth - 1) > 0.01
    listed = "; ".join(f"{name}: {times / count:.1%}" for name, times in failed.items())
    return f"Noiseless curves missed by more than 1 % at 1.5 times the last count: {listed}.\n"


def study(quick: bool, folder: Path | None) -> str:
    """Return all tables as Markdown."""
    count = 40 if quick else 400
    parts = [
        "## Noiseless curves\n",
        noiseless(count if quick else 2000),
        "## 5 % noise\n",
        noisy(count),
        "## Local descent\n",
        descent_failures(count),
    ]
    if folder is not None:
        curves = read_curves(folder)
        curves = curves[::8] if quick else curves
        questions = {inputs: cases(curves, inputs) for inputs in (3, 4)}
        asked = [case for each in questions.values() for case in each]
        parts += ["## Measured curves\n", accuracy(questions), "## Grades\n", separation(asked)]
        parts.append(crossfitted_ranges(asked))
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--output", type=Path, help="write the tables here too")
    options = parser.parse_args()
    named = os.environ.get("MOLDSIM_DATA")
    text = study(options.quick, Path(named) / "scaling" if named else None)
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
