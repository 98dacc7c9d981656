"""The pictures of the pages of results, each from the data of its study."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from benchmarks.results.regions import RESULTS, data, figures, one, share_of_gain
from benchmarks.results.tables import LEARNED, foresight, rigid, settings
from sim.results.plots.style import in_dark, new_figure, svg_of
from sim.statistics import t_interval

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def shares_of_gain(figure: Figure) -> None:
    """Draw the share of the oracle's gain that each predictor reaches, charged, known sizes."""
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
    axes.set_xlabel("share of the oracle's gain under sa_easy, % (95 %)")
    axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8)


def responses_over_load(figure: Figure) -> None:
    """Draw mean responses over load."""
    axes = figure.subplots()
    rows, loads = data("load")["rows"], ("0.3", "0.6", "0.9")
    shown = (
        ("easy", "user_estimate", "#555555"),
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
    axes.set_yticks((1, 2, 5, 10), ("1", "2", "5", "10"))
    axes.set_xlabel("offered load")
    axes.set_ylabel("mean response (h)")
    axes.legend(frameon=False, fontsize=8)


PICTURES: dict[str, tuple[Callable[[Figure], None], tuple[float, float]]] = {
    "impact_lublin/shares.svg": (shares_of_gain, (8, 4.2)),
    "load/responses.svg": (responses_over_load, (7, 4)),
}
"""What draws each picture, by its place below docs/results, and its size in inches."""


def drawn(name: str) -> str:
    """Return a picture as SVG."""
    draw, size = PICTURES[name]
    with new_figure(size, 110) as figure:
        draw(figure)
        return svg_of(figure, name)


def draw_all() -> None:
    """Draw all pictures anew whose studies were run."""
    for name in PICTURES:
        if (RESULTS / name).with_name("data.json").is_file():
            light = drawn(name)
            (RESULTS / name).write_text(light, encoding="utf-8")
            dark = (RESULTS / name).with_suffix(".dark.svg")
            dark.write_text(in_dark(light), encoding="utf-8")
