"""The examples in Python of the pages give what they say."""

import doctest
from pathlib import Path

import pytest

from tests.docs.commands import write, written

pytestmark = pytest.mark.fast

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = {
    "guide/library.md": 3,
    "guide/study_policies.md": 3,
    "guide/study_predictors.md": 5,
    "guide/few_runs.md": 6,
}


@pytest.mark.parametrize("page", PAGES)
def test_examples_of_the_pages(page, tmp_path, monkeypatch):
    write(written(DOCS / page), tmp_path)
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(DOCS / page), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > PAGES[page]
    assert found.failed == 0


def test_pages_with_examples_are_all_looked_at():
    having = {p for p in DOCS.rglob("*.md") if ">>> " in p.read_text(encoding="utf-8")}
    assert having == {DOCS / page for page in PAGES}
