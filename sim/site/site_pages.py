"""Self-contained pages of backtests and advice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from sim.results.durable import write_whole
from sim.results.plots.style import INK, LINE_COLOURS, clock, svg_of, tidy, time_ticks
from sim.results.plots.style import picture as embedded
from sim.results.rows import duration, texts
from sim.results.sentences import distance, quarter_distance, ranks, relative
from sim.site.comparison import DISTRUST, HOUR, MEANINGS, Backtest, held_by, percent
from sim.site.evidence import ExpectedRun, Proposal, clock_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TEMPLATE = Path(__file__).with_name("page.html")
MOST_COUNTS = 6
"""Counts of an application that the table shows."""
STEPS = 300
"""Pieces into which curves over time are cut."""
MOST_DOTS = 5000
"""Jobs that the plot of waits shows, every so many of them."""
HEAD = ("", "verdict", "mean wait", "median", "95th percentile", "rank correlation",
        "median |difference|", "utilisation")  # fmt: skip
NEXT = (
    "What to do: trust no waits simulated on this log; backtest.changes=true shows what matters "
    "most. If not given yet, these may help: cluster.processors (the machine's own size; records "
    "that hold more are wrong), backtest.capacity, other backtest.candidates. "
    "workload.partition=NAME takes the jobs of one partition, if it has processors of its own."
)
"""Where the nearest candidate is to be distrusted."""


def candidate_rows(figures: Mapping[str, Any]) -> list[list[str]]:
    """Return the recorded schedule and the candidates, a row each, as text."""
    every = [figures["recorded"], *figures["candidates"]]
    keys = ("mean_wait_time", "median_wait_time", "p95_wait_time",
            "median_absolute_wait_difference")  # fmt: skip
    mean, median, high, apart = (texts([one.get(key) for one in every], "s") for key in keys)
    used = texts([one["utilization"] for one in every], "%")
    rows = [["recorded", "–", mean[0], median[0], high[0], "–", apart[0], used[0]]]
    for k, one in enumerate(figures["candidates"], 1):
        far, rank = relative(one["mean_wait_difference"]), ranks(one["spearman_wait"])
        times = [f"{mean[k]} ({far})", median[k], high[k], rank, apart[k]]
        rows.append([one["name"], one["verdict"], *times, used[k]])
    return rows


def change_lines(figures: Mapping[str, Any]) -> list[str]:
    """Return what distrust asks for, and how far the nearest candidate is with one change each."""
    full = ", on the full machine" if figures["outages"] else ""
    advised = NEXT.replace(" backtest.capacity,", "") if full else NEXT
    if figures["changes"]:
        advised = advised.replace("; backtest.changes=true shows what matters most", "")
    return [advised] * (figures["verdict"] == DISTRUST) + [
        f"{figures['nearest']}, {MEANINGS[one['name']]}{full * (one['name'] != 'capacity')}: mean "
        f"wait {relative(one['mean_wait_difference'])}, rank correlation "
        f"{ranks(one['spearman_wait'])}."
        for one in figures["changes"]
    ]


def html_table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of text; the first column names its rows."""
    heads = "".join(f'<th scope="col">{escape(one)}</th>' for one in head)
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def paragraphs(sentences: Iterable[str]) -> str:
    """Return sentences, each a paragraph."""
    return "".join(f"<p>{escape(one)}</p>" for one in sentences)


def picture(
    draw: Callable[["Axes"], None], alternative: str, size: tuple[float, float] = (7.5, 3.4)
) -> str:
    """Return a drawing within a page, with what it says in words."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    tidy(axes)
    shown = embedded(svg_of(figure, alternative), alternative)
    return f"<figure>{shown}<figcaption>{escape(alternative)}</figcaption></figure>"


def write_page(path: Path, title: str, lead: str, sections: Mapping[str, str]) -> None:
    """Write a page: a title, a first sentence, and sections by heading."""
    body = "".join(
        f"<section><h2>{escape(head)}</h2>{content}</section>" for head, content in sections.items()
    )
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    write_whole(path, template.substitute(title=escape(title), lead=escape(lead), body=body))


def write_backtest_page(path: Path, figures: Mapping[str, Any], done: Backtest) -> None:
    """Write the page of a backtest."""
    nearest = done.nearest.name
    reasons = "".join(f"<li>{escape(one['text'])}</li>" for one in figures["reasons"])
    left = paragraphs(f"{name} is left out: {why}." for name, why in figures["left_out"].items())
    sections = {
        "Candidates": html_table("Recorded and simulated schedules", HEAD, candidate_rows(figures))
        + left + _quarters(figures),
        "Why they differ": (f"<ol>{reasons}</ol>" if reasons else "<p>The log shows no reason.</p>")
        + paragraphs(change_lines(figures)),
        "Waits": '<div class="figures">'
        + picture(lambda axes: _draw_waits(axes, done),
                  f"Each job's recorded wait against its wait by {nearest}; on the line both are "
                  "the same.", (4.6, 4.2))
        + picture(lambda axes: _draw_over_time(axes, done),
                  f"Mean wait of the jobs submitted in each stretch of time, recorded and by "
                  f"{nearest}.")
        + picture(lambda axes: _draw_held(axes, done),
                  f"Processors held over time, recorded and by {nearest}, and the machine.")
        + "</div>",
        "Classes": "".join(_class_table(kind, rows, nearest)
                           for kind, rows in figures["classes"].items()),
        "How it was made": _made(figures),
    }  # fmt: skip
    write_page(path, f"Backtest of {figures['log']}", distance(figures), sections)


def _quarters(figures: Mapping[str, Any]) -> str:
    rows = [[one["name"], *map(quarter_distance, one["quarters"])] for one in figures["candidates"]]
    number = max((len(row) for row in rows), default=1) - 1
    head = ["", *(f"quarter {k + 1}" for k in range(number))]
    caption = (
        "Mean wait against the recorded one and rank correlation, by quarter of the jobs: "
        "trust: within 20 %, at least 0.7 in each; care: within 50 %, at least 0.4; else distrust"
    )
    return html_table(caption, head, rows)


def _class_table(kind: str, rows: Sequence[Mapping[str, Any]], nearest: str) -> str:
    keys = ("recorded_mean_wait_time", "mean_wait_time", "median_absolute_wait_difference")
    columns = [texts([row[key] for row in rows], "s") for key in keys]
    body = [[row["class"], f"{row['jobs']:,}", *(column[place] for column in columns)]
            for place, row in enumerate(rows)]  # fmt: skip
    head = (kind, "jobs", "recorded mean wait", f"by {nearest}", "median |difference|")
    return html_table(f"By {kind}", head, body)


def _made(figures: Mapping[str, Any]) -> str:
    names = {
        "recorded": "the most that were held at once, as the log names no size",
        "log": "as the log says",
        "cluster.processors": "as asked",
    }
    by, dropped = names[figures["processors_by"]], sum(figures["dropped_jobs"].values())
    said = [
        f"{figures['jobs']:,} jobs on {figures['processors']:,} processors ({by}).",
        f"The replay begins with {figures['running_at_begin']:,} running and "
        f"{figures['waiting_at_begin']:,} waiting jobs.",
        f"{figures['jobs_without_wait']:,} jobs without a recorded wait are replayed, not "
        f"compared; {dropped:,} were left out in cleaning.",
        f"Outages during which the replay keeps processors from jobs: {len(figures['outages']):,}.",
        f"SHA-256 of the log: {figures['checksum']}.",
    ]
    return paragraphs(said)


def _draw_waits(axes: "Axes", done: Backtest) -> None:
    found, nearest = done.found, done.nearest
    judged = np.flatnonzero(found.judged)
    judged = judged[:: -(-len(judged) // MOST_DOTS)]
    wait = (nearest.start - found.submit)[judged].clip(1.0)
    recorded = found.wait[judged].clip(1.0)
    most = float(max(wait.max(), recorded.max(), 2.0))
    axes.loglog(recorded, wait, ".", markersize=2, color=LINE_COLOURS[0], alpha=0.4)
    axes.plot([1.0, most], [1.0, most], color=INK, linewidth=0.8)
    axes.set(xlabel="recorded wait (below 1 s as 1 s)", ylabel="simulated wait")
    for axis in (axes.xaxis, axes.yaxis):
        time_ticks(axis)
    axes.set(xlim=(0.8, 1.2 * most), ylim=(0.8, 1.2 * most))


def _draw_over_time(axes: "Axes", done: Backtest) -> None:
    found, nearest = done.found, done.nearest
    judged = found.judged
    axis = clock(found.begin, float(found.submit[-1]), found.trace.epoch)
    edges = np.linspace(axis.begin, axis.end, min(STEPS // 5, max(2, int(judged.sum()) // 20)))
    place = np.clip(np.searchsorted(edges, found.submit[judged], side="right") - 1, 0, None)
    number = np.maximum(np.bincount(place, minlength=len(edges)), 1)
    for k, (name, start) in enumerate((("recorded", found.start), (nearest.name, nearest.start))):
        means = np.bincount(place, (start - found.submit)[judged], len(edges)) / number / HOUR
        axes.step(axis.show(edges), means, where="post", label=name, color=LINE_COLOURS[k])
    axes.set_ylabel("mean wait (h)")
    axis.mark(axes)
    axes.legend(frameon=False, fontsize=8)


def _draw_held(axes: "Axes", done: Backtest) -> None:
    found, nearest = done.found, done.nearest
    axis = clock(found.begin, float(found.submit[-1]), found.trace.epoch)
    edges = np.linspace(axis.begin, axis.end, STEPS + 1)
    both = {"recorded": found.held, nearest.name: held_by(found, nearest.start)}
    for colour, (name, held) in zip(LINE_COLOURS, both.items(), strict=False):
        axes.step(axis.show(edges[:-1]), held.means(edges), where="post", label=name, color=colour,
                  linewidth=0.9)  # fmt: skip
    axes.axhline(found.processors, color=INK, linewidth=0.8, linestyle=":", label="machine")
    axes.set(ylabel="processors held", ylim=(0, None))
    axis.mark(axes)
    axes.legend(frameon=False, fontsize=8, ncols=3)


def advice_sentences(figures: Mapping[str, Any]) -> list[str]:
    """Return what is known of how many applications, and how advice was judged."""
    said = [
        f"{figures['repeating']:,} of {figures['applications']:,} applications came three times "
        f"or more ({percent(figures['share_of_jobs_repeating'])} of {figures['jobs']:,} completed "
        f"jobs): {figures['with_scaling']:,} of them say how they scale, "
        f"{figures['with_walltime']:,} how long to ask for. Jobs of one application that "
        "request different times are counted here as different applications."
    ]
    if longer := figures["longer_than_asked"]:
        later = f": to hold for 95 % of later runs, {figures['stretch']:.3g} times earlier ones"
        said.append(
            f"{longer:,} advised walltime{'s are' if longer > 1 else ' is'} longer than what is "
            f"asked for now (marked +){later if figures['stretch'] >= 1.005 else ''}."
        )
    if figures["not_completed"]:
        said.append(
            "Jobs whose runtimes are not used, as they failed, were cancelled or have no recorded "
            f"end: {figures['not_completed']:,}."
        )
    why = [f"{number:,} {words}" for words, number in figures["without_scaling"].items() if number]
    if why:
        said.append(
            "Here an application is jobs of one request (workload.identity=user_request), so that "
            "by definition each has one processor count and none can say how it scales."
            if "identity" in figures
            else f"Some applications give no evidence of scaling: {', '.join(why)}. Runs of the "
            "same input on other counts would show it; measure next says on which."
        )
    if "backtest" in figures:
        said.append(f"Starts and ends are of simulated schedules. {figures['backtest']}")
    judged = figures["judged"]
    if judged and judged["share_held"] is not None:
        told = (
            f"Judged by the {judged['jobs']:,} later completed jobs, "
            f"{percent(judged['share_with_walltime'])} of which have advice: "
            f"{percent(judged['share_held'], 1)} ended within it"
        )
        if judged["median_walltime_over_request"] is not None:
            told += (
                f" ({percent(judged['share_held_by_requests'], 1)} within what their users asked "
                f"for); walltimes are {judged['median_walltime_over_request']:.2f} of the requests "
                f"in the median, {judged['total_walltime_over_request']:.2f} in all"
            )
        said.append(f"{told}.")
    return said


def advice_rows(rows: Sequence[Proposal]) -> tuple[list[str], list[list[str]]]:
    """Return headings and cells of the table of advice."""
    head = ["application", "jobs", "recommended", "predicted (range)", "walltime", "sbatch",
            "asked now", "starts after", "ends after", "fastest", "efficient", "measure next",
            "counts: runs", "evidence"]  # fmt: skip
    cells = []
    for one in rows:
        own, usual = one.recommended, one.choices[0]
        now = "" if own == usual else f" (now {usual.count}: {duration(usual.ends)})"
        told = texts([own.predicted, own.low, own.high], "s")
        spread = "median of its runs" if own.low == own.high else f"{told[1]} to {told[2]}"
        walltime = one.walltime_on(own)
        counts = list(one.counts.items())
        never = "not run in this class" if own.count in one.counts_of_all else "never run"
        basis = "" if own.count in one.counts else f" (inferred, {never})"
        if one.knows_starts and own.ends > usual.ends:
            basis += " (ends later, costs less)"
        shown = ", ".join(f"{n}: {k}" for n, k in counts[:MOST_COUNTS])
        cells.append([
            one.application, f"{one.jobs:,}",
            f"{'keep ' * (own == usual)}{own.count}{basis}" if one.fastest else
            f"{own.count} (as now)",
            f"{told[0]} ({spread})" if one.fastest else "no evidence",
            "no evidence" if walltime is None else clock_time(walltime) + " +" * one.asks_for_more,
            one.sbatch or "–",
            "–" if one.asked is None else clock_time(one.asked),
            "–" if own.expected_start is None else duration(own.expected_start),
            duration(own.ends) + now if one.knows_starts else "–",
            _choice(one.fastest), _choice(one.efficient),
            "–" if one.measure_next is None else str(one.measure_next),
            shown + (" …" if len(counts) > MOST_COUNTS else ""), one.evidence,
        ])  # fmt: skip
    return head, cells


def _choice(one: ExpectedRun | None) -> str:
    """Return a count with its predicted time and the time after which it would start."""
    if one is None:
        return "no evidence"
    start = "" if one.expected_start is None else f", starts after {duration(one.expected_start)}"
    return f"{one.count} ({duration(one.predicted)}{start})"


def write_advice_page(path: Path, figures: Mapping[str, Any], rows: Sequence[Proposal]) -> None:
    """Write the page of advice."""
    lead, *more = advice_sentences(figures)
    known, rest = ([one for one in rows if one.says_something is says] for says in (True, False))
    caption = "First who says how it scales, then who has a walltime, by processor-seconds so far"
    sections = {
        "Advice": paragraphs(more) + (html_table(caption, *advice_rows(known)) if known else ""),
        "Without evidence": f"<details><summary>{len(rest):,} applications</summary>"
        + html_table(caption, *advice_rows(rest))
        + "</details>",
        "How to read it": paragraphs(HOW_TO_READ),
    }
    write_page(path, f"Advice from {figures['log']}", lead, sections)


HOW_TO_READ = (
    "An application is what the log's jobs have in common (workload.identity), and about how long "
    "they ask for.",
    "Fastest is the smallest count within 5 % of the least predicted time, efficient the largest "
    "one that spends at most twice the processor-seconds of the fewest; recommended is that of the "
    "two and the usual count which is expected to end first, its start included (5 % later "
    "where it costs fewer processor-seconds). Predicted times have 80 % ranges.",
    "A walltime should hold for 95 % of the jobs: a high quantile of the runtimes of completed "
    "jobs, stretched by as much as the log's own past has needed, so it may be above what is asked "
    "for now. It takes at least 19 of them. A "
    "walltime up to five minutes above whole days is cut to whole days, as limits usually are.",
    "Starts after is the mean wait of such jobs put among the last ones of the log, by EASY.",
    "Measure next is the count whose run would say most.",
)
