"""The pages hang together: links lead somewhere, and each page stands in index and navigation."""

import re
from pathlib import Path

import pytest
import yaml

from sim.help.pages import groups, known_keys

pytestmark = pytest.mark.fast

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
OTHERS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
MOST_WORDS = 12_000
"""Of all pages besides results, as `wc -w` counts them."""
NO_KEYS = {"workload.job", "predictor/before"}
"""What the page of the library shows to be refused, and the place of a wrapped predictor."""
PATHS = ("run_a_site", "study_policies", "study_predictors", "few_runs")
"""Pages by the reader's role."""
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
    assert set(parts) == {"Paths", "Reference", "Methods", "Results"}
    named = {path for pages in parts.values() for page in pages for path in page.values()}
    assert named == PLACES


def test_paths_of_pages_in_sources_exist():
    files = [path for name in ("sim", "predictors", "workloads", "scripts", "tests", "benchmarks")
             for path in (ROOT / name).rglob("*.py")]  # fmt: skip
    texts = [*files, *PAGES, *OTHERS[:-1]]  # a change log names pages of its time
    for path in texts:
        named = re.findall(r"docs/[\w/]+\.(?:md|json|png)", path.read_text(encoding="utf-8"))
        assert [one for one in named if not (ROOT / one).is_file()] == [], path


def test_the_pages_are_short():
    mine = [page for page in PAGES if "results" not in page.parts]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in mine) <= MOST_WORDS


def test_paths_by_role_stand_first_and_have_a_whole_example_each():
    for text, folder in ((DOCS / "index.md", "guide/"), (ROOT / "README.md", "docs/guide/")):
        first = [one for one in links(text.read_text(encoding="utf-8")) if "guide/" in one][:4]
        assert first == [f"{folder}{name}.md" for name in PATHS]
    for name in PATHS:
        text = (DOCS / "guide" / f"{name}.md").read_text(encoding="utf-8")
        assert text.count("\n") <= 150
        assert text.startswith("# I ")
        assert "$ moldsim" in text
        assert "workload=sample" in text


def test_the_glossary_is_short_and_each_term_has_a_source():
    text = (DOCS / "guide" / "terms.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][
        2:
    ]
    assert all(len(row) == 3 and row[2].strip() not in ("", "ours") for row in rows)
    assert 20 < sum(len(re.split(r"[,;]", row[0])) for row in rows) <= 40


def test_keys_that_pages_name_exist():
    """Those with a dot or a stroke, below a group that there is."""
    known = {*known_keys(), *groups()}
    tops = "|".join(sorted({name.partition(".")[0].partition("/")[0] for name in known}))
    named = re.compile(rf"(?<![\w./])((?:{tops})[./][a-z_./]+)=")
    for page in [page for page in PAGES if "results" not in page.parts]:
        found = set(named.findall(page.read_text(encoding="utf-8")))
        assert {one for one in found - known if not one.startswith("hydra")} <= NO_KEYS, page.name
