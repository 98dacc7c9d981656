"""Parts from packages of somebody's own: by entry point, by search path, by their classes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from predictors.base import RuntimePredictor
from sim.engine.loop import bind
from sim.errors import ConfigError, PolicyError
from sim.help.pages import roots
from sim.machine.base import Machine
from sim.policies.base import Allocation, Backfill, Grants, OpenAllocation, Placement, Reallocation
from sim.policies.order import Order
from sim.policies.passes.memory import make_memory
from sim.results.provenance import foreign_sources
from sim.simulation.build import build
from sim.simulation.parts import NEEDED
from sim.state.run_state import idle_machine
from sim.state.waiting_queue import WaitingQueue
from workloads.base import Workload
from workloads.shapes.family import ShapeFamily

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "mylab"
PUBLISHED = ROOT / "examples" / "published_rules"
PARTS = ("workload=mylab_bursts", "policy=mylab_easy_while_few", "predictor=mylab_proportional")
MOLDSIM = "import sys; sys.argv[0] = 'moldsim'; from sim.command.main import main; sys.exit(main())"
ITS_TESTS = ("-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests")
PROTOCOLS = {
    "policy.order": Order,
    "policy.backfill": Backfill,
    "policy.reallocation": Reallocation,
    "policy.placement": Placement,
    "policy.grants": Grants,
    "predictor": RuntimePredictor,
    "workload": Workload,
    "moldability": ShapeFamily,
    "cluster": Machine,
}


def members(protocol):
    return {
        name
        for name in [*vars(protocol), *getattr(protocol, "__annotations__", {})]
        if not name.startswith("_")
    }


@pytest.mark.fast
@pytest.mark.parametrize("key", PROTOCOLS)
def test_what_parts_need_is_what_their_protocols_have(key):
    needs = NEEDED[key]
    assert {*needs.methods, *needs.attributes} == members(PROTOCOLS[key])


@pytest.mark.fast
def test_an_allocation_is_of_one_of_two_protocols():
    both = members(Allocation), members(OpenAllocation)
    assert NEEDED["policy.allocation"].methods == ("choose|open",)
    assert both == ({"choose"}, {"open"})


def installed(package, made):
    """Build a package of examples, install it into a folder of its own, and return that."""
    left_out = shutil.ignore_patterns("build", "*.egg-info")
    source = shutil.copytree(package, made / "source", ignore=left_out)
    asked = ["pip", "install", "-q", "--no-deps", "--target", str(made / "lib"), str(source)]
    subprocess.run([sys.executable, "-m", *asked], check=True, capture_output=True)
    return made / "lib"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Where the example package is installed."""
    return installed(EXAMPLE, tmp_path_factory.mktemp("site"))


def run(code, folder, site, *arguments):
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{site}"}
    return subprocess.run(
        [sys.executable, *(["-P", "-c", code] if code else []), *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_an_installed_package_brings_its_parts_by_name(site, tmp_path):
    ended = run(MOLDSIM, tmp_path, site, "run", *PARTS, "hydra.run.dir=out")
    assert ended.returncode == 0, ended.stderr
    assert "mylab_easy_while_few by mylab_proportional" in ended.stdout
    manifest = (tmp_path / "out" / "manifest.json").read_text()
    assert "policy.backfill._target_/mylab/rules.py" in manifest
    ended = run("", EXAMPLE, site, *ITS_TESTS)
    assert ended.returncode == 0, ended.stdout


def test_published_rules_are_known_by_name_and_pass_their_tests(tmp_path):
    lib = installed(PUBLISHED, tmp_path)
    shown = run(MOLDSIM, tmp_path, lib, "help", "policy=two_shelves").stdout
    assert "Batches by Mounie, Rapine & Trystram" in shown
    asked = ("run", "policy=asp", "predictor=oracle", "workload.jobs=40", "hydra.run.dir=out")
    ended = run(MOLDSIM, tmp_path, lib, *asked)
    assert ended.returncode == 0, ended.stderr
    ended = run("", PUBLISHED, lib, *ITS_TESTS)
    assert ended.returncode == 0, ended.stdout


STARTS = """
import sys, sim
asked = ("workload.jobs=300", *sys.argv[2:])
jobs = sim.run(*asked, policy=sys.argv[1], baseline=None).jobs
print(jobs["start_time"].tolist())
"""


def test_compiled_code_of_a_package_is_its_own_and_never_old(tmp_path):
    conf = tmp_path / "conf" / "policy"
    conf.mkdir(parents=True)
    preset = EXAMPLE / "mylab" / "conf" / "policy" / "mylab_easy_while_few.yaml"
    shutil.copy(preset, conf / "few.yaml")
    own = shutil.copytree(EXAMPLE / "mylab", tmp_path / "lib" / "mylab").parent

    def starts(policy, lib):
        more = () if lib != own else (f"hydra.searchpath=[{conf.parent}]", "policy.backfill.most=2")
        ended = run(STARTS, tmp_path, lib, policy, *more)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    few = starts("few", own)
    fcfs, easy = (starts(name, tmp_path) for name in ("fcfs", "easy"))  # where nobody has mylab
    assert few not in (fcfs, easy)
    rules, limit = (
        own / "mylab" / "rules.py",
        "queue.at[0].waiting - number <= memory.plugin_data[0, 0]",
    )
    (own / "mylab" / "near.py").write_text(NEAR.format(more=0))
    text = rules.read_text().replace(limit, f"within({limit.replace(' <= ', ', ')})")
    rules.write_text(text.replace("\n@compiled", "from mylab.near import within\n\n@compiled", 1))
    assert starts("few", own) == few
    (own / "mylab" / "near.py").write_text(NEAR.format(more=1000))
    assert starts("few", own) == fcfs  # though the rule's own file is what it was


class Kept(NamedTuple):
    """What a rule of somebody else keeps, in a type of its own."""

    seen: int


@pytest.mark.fast
def test_a_plan_of_a_type_that_others_cannot_import_is_refused():
    with pytest.raises(
        PolicyError, match=r"is of type .*\.Kept; keep its data in RuleMemory\.plugin_data"
    ):
        bind(idle_machine(4, 1, 4), Kept(0))


@pytest.mark.fast
def test_what_a_rule_of_somebody_else_keeps_goes_by_its_names_in_rows():
    queue = WaitingQueue(1).tables
    with pytest.raises(TypeError, match="plug_in is no field of RuleMemory; see plugin_data"):
        make_memory(queue, 4, plug_in=[[1.0]])
    assert make_memory(queue, 4, plugin_data=[1, 2]).plugin_data.tolist() == [[1.0, 2.0]]


NEAR = """from predictors.compiling import compiled

@compiled
def within(waiting, most):
    return waiting + {more} <= most
"""


def test_help_completion_and_misspellings_know_its_parts(site, tmp_path):
    shown = run(MOLDSIM, tmp_path, site, "help", "policy", "mylab_easy_while_few").stdout
    assert "policy.backfill.most=5" in shown
    assert "jobs that may wait while others pass the head" in shown
    words = run(MOLDSIM, tmp_path, site, "completion", "--line", "run policy=myl").stdout
    assert words.splitlines() == ["policy=mylab_easy_while_few"]
    ended = run(MOLDSIM, tmp_path, site, "run", "policy=mylab_easy_whil")
    assert ended.returncode == 2
    assert "did you mean mylab_easy_while_few?" in ended.stderr


def test_a_run_is_done_again_when_the_package_has_changed(site, tmp_path):
    own = shutil.copytree(site, tmp_path / "lib")
    asked = ("sweep", *PARTS, "workload.jobs=20", "picture=none", "hydra.sweep.dir=out")
    assert run(MOLDSIM, tmp_path, own, *asked).returncode == 0
    assert "1 of 1 runs are finished already" in run(MOLDSIM, tmp_path, own, *asked).stdout
    rules = own / "mylab" / "rules.py"
    rules.write_text(rules.read_text() + "\n# changed\n")
    again = run(MOLDSIM, tmp_path, own, *asked)
    assert again.returncode == 0
    assert "are finished already" not in again.stdout


@pytest.mark.parametrize("way", ["--config-dir", "hydra.searchpath"])
def test_a_folder_of_configuration_serves_without_an_installation(way, tmp_path):
    conf = EXAMPLE / "mylab" / "conf"
    where = ["--config-dir", str(conf)] if way == "--config-dir" else [
        "hydra.searchpath=[pkg://mylab.conf]"
    ]  # fmt: skip
    asked = ("run", *where, *PARTS, "workload.jobs=20", "hydra.run.dir=out", "baseline=fcfs")
    ended = run(MOLDSIM, tmp_path, EXAMPLE, *asked)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out" / "baseline" / "summary.json").is_file()


def test_a_sweep_with_a_folder_of_configuration_can_be_gone_on_with(tmp_path):
    conf = shutil.copytree(EXAMPLE / "mylab" / "conf", tmp_path / "conf")
    asked = ["sweep", "--config-dir", "conf", *PARTS, "workload.jobs=20", "seed=1,2",
             "picture=none", "baseline=null", "hydra.sweep.dir=out"]  # fmt: skip
    first = run(MOLDSIM, tmp_path, EXAMPLE, *asked)
    assert "2 of 2 done, 0 failed" in first.stderr
    command = (tmp_path / "out" / "sweep.log").read_text().splitlines()[0]
    assert f"moldsim sweep --config-dir {conf} " in command
    summaries = sorted((tmp_path / "out").glob("*/summary.json"))
    before = [path.stat().st_mtime_ns for path in summaries]
    again = run(MOLDSIM, tmp_path, EXAMPLE, *asked)
    assert "2 finished runs are done again if their inputs" in again.stdout
    assert [path.stat().st_mtime_ns for path in summaries] == before


CLASSES = '''
class Empty:
    """No policy."""

class NoLearns:
    def attach(self, jobs): ...
    def curve(self, job, counts): ...
    def observe(self, observation): ...
    def explain(self, job, nprocs): ...

class Wants:
    def __init__(self, width): self.width = width
    def begin(self, view): ...

def function(view): ...
'''


@pytest.mark.fast
@pytest.mark.parametrize(
    ("key", "name", "message"),
    [
        ("policy", "Empty", "must be a class with begin; it lacks begin"),
        ("policy", "function", "must be a class with begin; it is a function"),
        ("policy", "Wants", "policy.width: a value is needed"),
        ("policy.order", "Empty", "it lacks keys"),
        ("policy.allocation", "Empty", "must be a class with choose or open; it lacks"),
        ("predictor", "NoLearns", "needs attach, curve, explain, observe, learns; it lacks learns"),
        ("workload", "Empty", "must be a class with trace; it lacks trace"),
        (
            "policy.reallocation.cost",
            "Empty",
            "must be a class of one of sim, predictors, work",
        ),
        ("predictor.before", "Empty", "it lacks attach, curve, explain, observe"),
        ("predictor", "Nothing", "there is no such class"),
    ],
)
def test_what_is_no_part_is_refused_with_what_is_missing(key, name, message, tmp_path, monkeypatch):
    (tmp_path / "somebodys_parts.py").write_text(CLASSES)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as error:
        build({"_target_": f"somebodys_parts.{name}"}, key)
    assert message in str(error.value)
    assert str(error.value).startswith(
        key if name == "Wants" else f"{key}._target_=somebodys_parts.{name}"
    )
    assert "\n" not in str(error.value)
    sys.modules.pop("somebodys_parts", None)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import no_such_module", "cannot be imported (No module named 'no_such_module')"),
        ("1 / 0", "cannot be imported (ZeroDivisionError: division by zero)"),
        ("def (", "cannot be imported (SyntaxError"),
    ],
)
def test_a_module_that_cannot_be_imported_says_why(text, message, tmp_path, monkeypatch):
    (tmp_path / "broken_parts.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError) as error:
        build({"_target_": "broken_parts.Rule"}, "policy")
    assert message in str(error.value)
    sys.modules.pop("broken_parts", None)


@pytest.mark.fast
def test_what_foreign_classes_are_made_of_is_known():
    assert foreign_sources("sim.policies.base.Policy") == {}
    assert foreign_sources("no_such_package.Rule") == {}
    assert "simpy/core.py" in foreign_sources("simpy.core.Environment")
    assert roots()[0] == ROOT / "conf"
