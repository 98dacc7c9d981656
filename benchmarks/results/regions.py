"""Tables of pages from data: what stands between ``<!-- table: NAME -->`` and ``<!-- end -->``."""

import functools
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sim.results.rows import ERROR, percent, texts
from sim.statistics import Interval, log_ratios, ratio_of_means, t_interval

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "docs" / "results"
REGION = re.compile(r"^<!-- table: ([\w/-]+) -->$.*?^<!-- end -->$", re.M | re.S)
RESPONSE = "mean_response_time"

Row = Mapping[str, Any]
Maker = Callable[[], list[str]]
TABLES: dict[str, Maker] = {}
"""What writes each table, by ``STUDY/NAME``; filled by `benchmarks.results.tables`."""


@functools.cache
def data(study: str) -> dict[str, Any]:
    """Return what a study's folder holds."""
    path = RESULTS / study / "data.json"
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def table(name: str) -> Callable[[Maker], Maker]:
    """Register what writes the lines of a table."""

    def keep(maker: Maker) -> Maker:
        TABLES[name] = maker
        return maker

    return keep


def lines(head: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> list[str]:
    """Return a Markdown table whose first columns are words, the others numbers.

    Examples
    --------
    >>> lines(["policy", "change"], [["sa", "-3 %"]])
    ['| policy | change |', '| --- | ---: |', '| sa | -3 % |']
    """
    sides = ["---"] * words + ["---:"] * (len(head) - words)
    return [f"| {' | '.join(map(str, row))} |" for row in (head, sides, *rows)]


def _same(held: str | None, asked: str) -> bool:
    """Say whether two values are the same text or the same number."""
    try:
        return held == asked or (held is not None and float(held) == float(asked))
    except ValueError:
        return False


def one(rows: Iterable[Row], **setting: str) -> Row:
    """Return the only row of a setting; keys have a double underscore for a dot."""
    wanted = {key.replace("__", "."): value for key, value in setting.items()}
    found = [row for row in rows if all(_same(row.get(k), v) for k, v in wanted.items())]
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows have {wanted}")
    return found[0]


def figures(row: Row, figure: str = RESPONSE) -> np.ndarray:
    """Return a figure of each replication."""
    return np.array(row[figure], float)


def relative_change(own: np.ndarray, reference: np.ndarray) -> Interval:
    """Return the mean log ratio as a change; of pages made before `sim.statistics`, by t."""
    found = t_interval(log_ratios(own, reference))
    low, high = (float(np.expm1(end)) for end in (found.low, found.high))
    return Interval(float(np.expm1(found.mean)), low, high, found.count)


def change(own: Row, reference: Row, figure: str = RESPONSE) -> str:
    """Return the relative change with its 95 % interval, paired by replication."""
    return percent(relative_change(figures(own, figure), figures(reference, figure)))


def share_of_gain(own: ArrayLike, best: ArrayLike, reference: ArrayLike) -> Interval:
    """Return how much of the best one's gain over a reference is kept, in log ratios.

    Parameters
    ----------
    own, best, reference : array_like of float, shape (n,)
        A figure of which less is better, such as mean response times in seconds,
        by replication: of a predictor, of the oracle, of rigid jobs.

    Returns
    -------
    Interval
        1 is all of it, 0 is none, below 0 it does worse than the reference. More than 1 is
        possible: an oracle's job takes the end that is best for it, not for the queue.

    Examples
    --------
    >>> share_of_gain([60.0, 63.0], [50.0, 53.0], [100.0, 105.0]).mean.__round__(3)
    0.742
    """
    return ratio_of_means(log_ratios(own, reference), log_ratios(best, reference))


def kept(own: Row, oracle: Row, reference: Row) -> str:
    """Return the share of the oracle's gain over the reference that a row keeps."""
    every = (figures(each) for each in (own, oracle, reference))
    return percent(share_of_gain(*every))


def worst(own: Row, reference: Row) -> str:
    """Return the largest ratio of mean responses among the replications."""
    return f"{(figures(own) / figures(reference)).max():.2f}"


def mean(row: Row, figure: str, scale: float = 1.0, digits: int = 2) -> str:
    """Return a figure's mean with its 95 % interval."""
    found: Interval = t_interval(scale * figures(row, figure))
    return f"{found.mean:.{digits}f} ± {found.half:.{digits}f}"


def median_error(row: Row) -> str:
    """Return the mean over replications of the median error, as reports say it."""
    return texts([float(figures(row, "prediction_median_error").mean())], ERROR)[0]


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def filled(text: str) -> str:
    """Return a page's text with its tables as the data say.

    Raises
    ------
    KeyError
        If no table has the name.
    """

    def anew(found: re.Match[str]) -> str:
        try:
            made = TABLES[found[1]]()
        except FileNotFoundError:  # a study that was never run
            return found[0]
        return "\n".join([f"<!-- table: {found[1]} -->", *made, "<!-- end -->"])

    return REGION.sub(anew, text)


def differing(write: bool) -> list[str]:
    """Return the pages whose tables differ from their data; write these anew if asked."""
    found = []
    for page in pages():
        text = page.read_text(encoding="utf-8")
        anew = filled(text)
        if anew != text:
            found.append(str(page.relative_to(ROOT)))
            if write:
                page.write_text(anew, encoding="utf-8")
    return found
