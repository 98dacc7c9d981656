"""The notebook of the examples runs from the top, and shows what its cells give.

``python -m tests.docs.test_notebook`` writes its outputs anew.
"""

import nbformat
from nbclient import NotebookClient

from tests.docs.commands import ROOT

NOTEBOOK = ROOT / "examples" / "first_study.ipynb"
PICTURE = "image/png"
"""Its bytes are another matplotlib's on another computer."""


def executed(book: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Return a notebook as a kernel of its own fills it in, from the top."""
    own = {"metadata": {"path": str(ROOT)}}
    metadata = book.metadata.copy()
    NotebookClient(book, timeout=600, record_timing=False, resources=own).execute()
    book.metadata = metadata  # without the version of Python
    return book


def read() -> nbformat.NotebookNode:
    return nbformat.read(NOTEBOOK, as_version=4)


def outputs(book: nbformat.NotebookNode) -> list[list[nbformat.NotebookNode]]:
    """Return what code cells print and give; what they display is how long they took."""
    cells = [cell for cell in book.cells if cell.cell_type == "code"]
    return [[one for one in cell.outputs if one.output_type != "display_data"] for cell in cells]


def without_pictures(book: nbformat.NotebookNode) -> list[list[nbformat.NotebookNode]]:
    found = outputs(book)
    for cell in found:
        for one in cell:
            one.get("data", {}).pop(PICTURE, None)
    return found


def test_the_notebook_gives_what_it_shows(monkeypatch, tmp_path):
    for key in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(key, str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    shown, again = read(), executed(read())
    for book in (shown, again):
        assert PICTURE in outputs(book)[-1][-1].data
    assert without_pictures(again) == without_pictures(shown)


def test_the_notebook_shows_progress_a_sweep_and_intervals_by_the_library_alone():
    book = read()
    source = "\n".join(cell.source for cell in book.cells if cell.cell_type == "code")
    assert [line for line in source.splitlines() if "import" in line] == ["import sim"]
    assert all(name in source for name in ("sim.sweep(", "sim.changes(", "class Squeezed"))
    shown = [one for cell in book.cells for one in cell.get("outputs", ())]
    assert any("ended after" in one.get("data", {}).get("text/plain", "") for one in shown)


def main() -> None:
    """Write the notebook with its outputs."""
    nbformat.write(executed(read()), NOTEBOOK)


if __name__ == "__main__":
    main()
