"""The notebook of the examples runs from the top, and shows what its cells give.

``python -m tests.docs.test_notebook`` writes its outputs anew.
"""

import ast
import base64
import contextlib
import io
import json
from typing import Any

from matplotlib.figure import Figure

from tests.docs.commands import ROOT

NOTEBOOK = ROOT / "examples" / "first_study.ipynb"


def outputs(cells: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return what each code cell prints and shows, run one after the other."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for cell in cells:
        tree = ast.parse("".join(cell["source"]))
        last = (
            ast.Expression(tree.body.pop().value) if isinstance(tree.body[-1], ast.Expr) else None
        )
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(tree, "cell", "exec"), names)
            value = eval(compile(last, "cell", "eval"), names) if last else None
        made: list[dict[str, Any]] = []
        if printed.getvalue():
            lines = printed.getvalue().splitlines(keepends=True)
            made.append({"output_type": "stream", "name": "stdout", "text": lines})
        if value is not None:
            made.append({"output_type": "display_data", "metadata": {}, "data": shown(value)})
        found.append(made)
    return found


def shown(value: object) -> dict[str, Any]:
    """Return a value as a notebook holds it: text, and a figure as a picture."""
    if not isinstance(value, Figure):
        return {"text/plain": repr(value).splitlines(keepends=True)}
    picture = io.BytesIO()
    value.savefig(picture, format="png", dpi=80, metadata={"Software": None})
    return {"text/plain": ["a figure"], "image/png": base64.b64encode(picture.getvalue()).decode()}


def texts(made: list[dict[str, Any]]) -> list[str]:
    """Return the text of a cell's outputs."""
    return ["".join(one.get("text") or one["data"]["text/plain"]) for one in made]


def code(book: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the code cells of a notebook."""
    return [cell for cell in book["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_gives_what_it_shows():
    cells = code(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    assert len(cells) > 4
    again = outputs(cells)
    assert [texts(one) for one in again] == [texts(cell["outputs"]) for cell in cells]
    assert any("image/png" in out.get("data", {}) for cell in cells for out in cell["outputs"])


def main() -> None:
    """Write the notebook with its outputs."""
    book = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    made = outputs(code(book))
    for count, (cell, mine) in enumerate(zip(code(book), made, strict=True), 1):
        cell |= {"outputs": mine, "execution_count": count}
    NOTEBOOK.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
