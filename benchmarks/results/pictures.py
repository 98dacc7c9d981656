"""The pictures of the pages of results, each from the data of its study."""

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from benchmarks.results.regions import RESULTS, data, figures, one
from benchmarks.results.tables import LEARNED, foresight, rigid, settings
from sim.statistics.intervals import t_interval
from sim.statistics.paired import share_of_gain

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def kept_shares() -> Figure:
    """Draw the share of the oracle's gain that each predictor keeps, charged, known sizes."""
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    names = []
    for place, (name, rows, key) in enumerate(settings()):
        key["sizes"] = "known"
        names.append(", ".join(name))
        best, base = foresight(rows, **key), rigid(rows, **key)
        for k, predictor in enumerate(LEARNED):
            own = one(rows, policy="sa_easy", predictor=predictor, given="charged", **key)
            found = share_of_gain(figures(own), figures(best), figures(base))
            ends = np.clip([found.low, found.high], -0.5, 2.0)
            height = -place - 0.2 * k
            axes.plot(100 * ends, [height, height], color=COLOURS[k], lw=2)
            axes.plot(100 * found.mean, height, "o", color=COLOURS[k], ms=5,
                      label=LEARNED[predictor] if place == 0 else None)  # fmt: skip
    axes.axvline(100, color="0.6", lw=1)
    axes.set_xlim(0, 150)
    axes.set_yticks([-place - 0.3 for place in range(len(names))], names)
    axes.set_xlabel("share of the oracle's gain kept under sa_easy, % (95 %)")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8)
    return figure


def responses_over_load() -> Figure:
    """Draw mean responses over load."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    rows, loads = data("load")["rows"], ("0.3", "0.6", "0.9")
    shown = (
        ("easy", "user_estimate", "0.3"),
        ("sa_easy", "adept", COLOURS[0]),
        ("sa_easy", "oracle", COLOURS[2]),
        ("iterative", "adept", COLOURS[1]),
        ("iterative", "oracle", COLOURS[3]),
    )
    for policy, predictor, colour in shown:
        found = [
            t_interval(
                figures(one(rows, policy=policy, predictor=predictor, workload__load=load)) / 3600
            )
            for load in loads
        ]
        means = [each.mean for each in found]
        places, halves = [float(load) for load in loads], [each.half for each in found]
        axes.errorbar(places, means, halves, label=f"{policy}, {predictor}", color=colour,
                      marker="o", ms=4, capsize=3)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xlabel("offered load")
    axes.set_ylabel("mean response (h)")
    axes.legend(frameon=False, fontsize=8)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "impact_lublin/kept.png": kept_shares,
    "load/responses.png": responses_over_load,
}
"""What draws each picture, by its place below docs/results."""


def drawn(name: str) -> bytes:
    """Return a picture as PNG."""
    kept = io.BytesIO()
    PICTURES[name]().savefig(kept, format="png", dpi=110, metadata={"Software": None})
    return kept.getvalue()


def draw_all() -> None:
    """Draw all pictures anew whose studies were run."""
    for name in PICTURES:
        if (RESULTS / name).with_name("data.json").is_file():
            (RESULTS / name).write_bytes(drawn(name))
