"""Help knows every key, column and figure, and every public name has an example."""

import inspect
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import predictors
import sim
import workloads
from scripts.composing import composed
from sim.command.topics import text_of
from sim.help.meanings import COLUMNS, FIGURES
from sim.help.pages import known_keys
from sim.results.artefacts import TABLES
from sim.simulation.replay import summary_of
from sim.simulation.scene import play, set_scene

pytestmark = pytest.mark.fast

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
EXAMPLES = "".join(page.read_text(encoding="utf-8") for page in sorted(GUIDE.glob("*.md")))
NAMES = [(p, name) for p in (sim, predictors, workloads) for name in p.__all__]
RUNS = {
    "usual": ("workload.jobs=20", "metrics.warmup=2"),
    "failing": (
        *("workload=decks", "workload.cycles=40", "evolving=adaptive", "predictor=dynamic"),
        *("cluster=failing", "policy=expand", "cluster.shrink_off_failed=true"),
    ),
}


@pytest.fixture(scope="module", params=RUNS)
def written(request):
    """What a run writes."""
    config = composed(*RUNS[request.param])
    scene = set_scene(config, 0)
    played = play(config, config, scene)
    return played.outcome.tables, summary_of(config, scene, played), scene


@pytest.mark.slow
def test_help_has_every_group_and_key_and_all_columns():
    assert [one for one in set(known_keys()) if not text_of(one)] == []
    shown = text_of("columns") or ""
    assert shown.count("\n  jobs.parquet: ") == len(COLUMNS["jobs.parquet"]) - 1
    assert shown.count("  summary.json: ") == len(FIGURES)


def test_every_column_has_a_meaning(written):
    made, *_ = written
    tables = {f"{name}.parquet": getattr(made, name) for name in TABLES}
    for file, table in tables.items():
        assert set(table.columns) - COLUMNS[file].keys() == set(), file


def test_every_figure_has_a_meaning(written):
    _, summary, _ = written
    patterns = [one for kind in FIGURES for one in kind.split()]
    assert len(summary) > 100
    assert [k for k in summary if not any(fnmatchcase(k, one) for one in patterns)] == []


def test_no_column_is_there_that_no_run_has():
    config = composed("workload.jobs=20")
    scene = set_scene(config, 0)
    tables = play(config, config, scene).outcome.tables
    for name in ("allocations", "timeline", "predictions"):
        assert list(getattr(tables, name).columns) == list(COLUMNS[f"{name}.parquet"])


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda one: str(one))
def test_every_public_name_has_an_example(package, name):
    one = getattr(package, name)
    is_error = inspect.isclass(one) and issubclass(one, Exception)
    called = f"{package.__name__}.{name}"
    on_page = f"{called}(" in EXAMPLES or f": {called}," in EXAMPLES
    assert is_error or ">>> " in (inspect.getdoc(one) or "") or on_page
