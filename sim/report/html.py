"""Pieces of a page: tables that sort and scroll within themselves, pictures, folds."""

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import pandas as pd

NUMBER = re.compile(r"^\s*[<±]?\s*(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)")
"""A figure at the begin of a cell, by which its column is sorted."""


@dataclass(frozen=True)
class Cell:
    """A cell of a table.

    Attributes
    ----------
    text : str
        Plain.
    small : str
        What stands below it, smaller; plain.
    value : str or None
        By what it is sorted, where that is not the figure that the text begins with.
    html : str
        Stands in place of the text where there is some.
    """

    text: str
    small: str = ""
    value: str | None = None
    html: str = ""


def sort_value(text: str) -> str:
    """Return the figure that a text begins with, else the text; nothing for a dash.

    Examples
    --------
    >>> sort_value("-47.0 % [-60.0, -30.0]"), sort_value("1,234"), sort_value("–"), sort_value("sa")
    ('-47.0', '1234', '', 'sa')
    """
    found = NUMBER.match(text)
    return found[1].replace(",", "") if found else "" if text == "–" else text


def breaking(text: str) -> str:
    """Return a text that may break behind the signs within names and settings.

    Examples
    --------
    >>> breaking("user_estimate, workload.load=0.6")
    'user_<wbr>estimate, workload.<wbr>load=<wbr>0.6'
    """
    return re.sub(r"(?<=[A-Za-z])([_.=/])(?=\w)", r"\1<wbr>", escape(text))


def _cell(cell: Cell, side: str) -> str:
    value = sort_value(cell.text) if cell.value is None else cell.value
    small = f" <small>{escape(cell.small)}</small>" if cell.small else ""
    inner = cell.html or breaking(cell.text)
    return f'<td data-value="{escape(value)}"{side}>{inner}{small}</td>'


def table(
    caption: str,
    head: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    words: Sequence[str] = (),
    name: str = "",
) -> str:
    """Return a table that sorts by a click on a heading and scrolls within itself.

    Parameters
    ----------
    caption : str
        What it shows; plain.
    head : sequence of str
        Headings, with their units.
    rows : sequence of sequence of Cell
    words : sequence of str
        Headings of columns that hold words, not numbers.
    name : str
        Its id.
    """
    sides = [' class="text"' if one in words else "" for one in head]
    heads = "".join(
        f'<th scope="col"{side}><button type="button">{breaking(one)}</button></th>'
        for one, side in zip(head, sides, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(_cell(c, side) for c, side in zip(row, sides, strict=True))}</tr>"
        for row in rows
    )
    marked = f' id="{name}"' if name else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table{marked}><caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def text_table(caption: str, frame: pd.DataFrame, words: Sequence[str] = ()) -> str:
    """Return a table of text as a table of a page."""
    rows = [[Cell(str(value)) for value in row] for row in frame.itertuples(index=False)]
    return table(caption, list(map(str, frame.columns)), rows, words)


def image(content: bytes, alternative: str) -> str:
    """Return a PNG within the page."""
    data = base64.b64encode(content).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(alternative)}">'


def fold(title: str, content: str) -> str:
    """Return what is shown when its title is opened."""
    return f"<details><summary>{escape(title)}</summary>{content}</details>" if content else ""
