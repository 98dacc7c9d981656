"""The reference is that of the code: every key, column, figure and public name, and no other."""

import inspect
import re
from fnmatch import fnmatchcase

import pytest

import predictors
import sim
import workloads
from scripts.composing import composed
from sim.help.meanings import COLUMNS, FIGURES
from sim.help.misspellings import groups, known_keys
from sim.help.pages import INTERNAL
from sim.results.artefacts import TABLES
from sim.simulation.replay import artefacts
from sim.simulation.scene import play, set_scene
from tests.docs.reference import FOLDER, PAGES

pytestmark = pytest.mark.fast

NAMES = [(p, name) for p in (sim, predictors, workloads) for name in p.__all__]
RUNS = {
    "usual": ("workload.jobs=20", "metrics.warmup=2"),
    "failing": (
        *("workload=decks", "workload.cycles=40", "evolving=adaptive", "predictor=dynamic"),
        *("cluster=failing", "policy=expand", "cluster.shrink_off_failed=true"),
    ),
    "grown": ("growth=keep_time", "workload.jobs=20", "predictor=focused"),
}


@pytest.fixture(scope="module", params=RUNS)
def written(request):
    """What a run writes."""
    config = composed(*RUNS[request.param])
    scene = set_scene(config, 0)
    return artefacts(config, play(config, config, scene), scene, 1.0, ""), scene


def text_of(page: str) -> str:
    return (FOLDER / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_the_code_makes(page):
    assert text_of(page) == "\n".join(PAGES[page]())


def test_every_group_and_key_is_there():
    page = text_of("keys.md")
    assert [one for one in groups() if f"\n## {one}\n" not in page] == []
    shown = {name.partition("=")[0] for name in re.findall(r"^\| `([^`]+)`", page, re.M)}
    assert set(known_keys()) - {*groups(), *INTERNAL} - shown == set()


def test_every_column_has_a_meaning(written):
    made, scene = written
    tables = {f"{name}.parquet": getattr(made.tables, name) for name in TABLES}
    if scene.sizes is not None:
        tables["sizes.parquet"] = scene.sizes
    for file, table in tables.items():
        assert set(table.columns) - COLUMNS[file].keys() == set(), file


def test_every_figure_has_a_meaning(written):
    made, _ = written
    patterns = [one for kind in FIGURES for one in kind.patterns]
    assert len(made.summary) > 100
    assert [k for k in made.summary if not any(fnmatchcase(k, one) for one in patterns)] == []


def test_no_column_is_there_that_no_run_has():
    config = composed("workload.jobs=20")
    scene = set_scene(config, 0)
    tables = artefacts(config, play(config, config, scene), scene, 1.0, "").tables
    for name in ("allocations", "timeline", "predictions"):
        assert list(getattr(tables, name).columns) == list(COLUMNS[f"{name}.parquet"])


def test_every_public_name_is_there_and_no_other():
    listed = re.findall(r"^::: (\S+)$", text_of("functions.md"), re.MULTILINE)
    assert sorted(listed) == sorted(f"{package._MODULES[name]}.{name}" for package, name in NAMES)


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda one: str(one))
def test_every_public_name_has_an_example(package, name):
    one = getattr(package, name)
    is_error = inspect.isclass(one) and issubclass(one, Exception)
    pages = [
        (FOLDER.parent / "guide" / page).read_text("utf-8") for page in ("library.md", "extend.md")
    ]
    on_page = any(
        f"{package.__name__}.{name}(" in text or f": sim.{name}," in text for text in pages
    )
    assert is_error or ">>> " in (inspect.getdoc(one) or "") or on_page
