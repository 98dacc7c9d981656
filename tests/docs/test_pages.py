"""The pages hang together: links lead somewhere, and each page stands in index and navigation."""

import re
from pathlib import Path

import pytest
import yaml

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
MOST_WORDS = 10_500
"""Of guide, methods and first page."""
PLACES = {page.relative_to(DOCS).as_posix() for page in PAGES} - {"index.md"}


def links(text: str) -> list[str]:
    return [one for one in re.findall(r"\]\(([^)\s]+)\)", text) if not one.startswith("http")]


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as mkdocs and code hosts make them."""
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()) for head in heads)
    return {head.strip().replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for link in links(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


def test_every_page_stands_in_the_index_and_in_the_navigation():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    assert {link for link in links(text) if link.endswith(".md")} == PLACES
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    parts = {name: pages for part in site["nav"][1:] for name, pages in part.items()}
    assert set(parts) == {"Guide", "Methods", "Reference", "Results"}
    named = {path for pages in parts.values() for page in pages for path in page.values()}
    assert named == PLACES


def test_paths_of_pages_in_sources_exist():
    files = [path for name in ("sim", "predictors", "workloads", "scripts", "tests", "benchmarks")
             for path in (ROOT / name).rglob("*.py")]  # fmt: skip
    texts = [*files, *PAGES, *OTHERS]
    for path in texts:
        named = re.findall(r"docs/[\w/]+\.(?:md|json|png)", path.read_text(encoding="utf-8"))
        assert [one for one in named if not (ROOT / one).is_file()] == [], path


def words(page: Path) -> int:
    """Return the words of a page that were written by hand, without code and tables from data."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    text = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.S)
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def test_the_guide_is_short():
    mine = [p for p in PAGES if p.parent.name in ("guide", "methods")]
    assert sum(map(words, [DOCS / "index.md", *mine])) <= MOST_WORDS
