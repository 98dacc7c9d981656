"""Every YAML option composes and builds; the help page has every key."""

import functools
import itertools
import re
import subprocess
import sys

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from sim.composition import prepare
from sim.help.pages import CONFIG_FOLDER, options, page
from sim.simulation.build import build
from sim.simulation.scene import REPETITION
from workloads.truth.options import TRUTH_KEYS

prepare()
GROUPS = {
    path.relative_to(CONFIG_FOLDER).with_suffix("").as_posix()
    for path in CONFIG_FOLDER.rglob("*.yaml")
} - {"config"}
OVERLAYS = ("experiment/", "given/")
OPTIONS = sorted(name for name in GROUPS if not name.startswith(OVERLAYS))
EXPERIMENTS = sorted(name for name in GROUPS if name.startswith("experiment/"))
GIVEN = sorted(name for name in GROUPS if name.startswith("given/"))
INTERVALS = ("daly", "young", "fixed", "none")
FILLED = {
    "workload/swf": ["workload.path=log.swf"],
    "workload/archive": ["workload.name=SDSC-SP2"],
    **{option: ["policy=equi"] for option in OPTIONS if "/cost/" in option},
    "workload/sacct": ["workload.path=jobs.txt"],
    "workload/table": ["workload.path=jobs.csv"],
    "workload/batsim": ["workload.path=workload.json"],
    **{f"evolving/interval/{name}": ["evolving=adaptive"] for name in INTERVALS},
}
FILLED |= {name: ["cluster=shared"] for name in OPTIONS if re.match("cluster/.*/", name)}
FILLED["policy/placement/lowest"] = ["policy=easy_fastest"]
FILLED["policy/placement/fastest"] = ["policy=easy_fastest"]
NEEDS_FILE = {"moldability/measured", "cluster/cpu/recorded", "cluster/network/recorded"}
PAGE = page()


def composed(*overrides):
    with initialize_config_dir(str(CONFIG_FOLDER), version_base="1.3"):
        return compose("config", overrides=list(overrides))


@functools.cache
def plain(option):
    group, _, name = option.rpartition("/")
    return OmegaConf.to_container(
        composed(f"{group}={name}", *FILLED.get(option, [])), resolve=True
    )


def leaves(node, prefix=""):
    """Return the dotted keys of all values that a command line can set."""
    if not isinstance(node, dict) or (prefix and not node):
        return {prefix.rstrip(".")}
    return {
        key
        for name, value in node.items()
        if name != "_target_"
        for key in leaves(value, f"{prefix}{name}.")
    }


@pytest.mark.parametrize("option", [o for o in OPTIONS if o not in NEEDS_FILE])
def test_every_option_composes_and_builds(option):
    config = plain(option)
    part = option.split("/")[0]
    node = {k: v for k, v in config[part].items() if k not in (*REPETITION, *TRUTH_KEYS)}
    if part == "cluster":
        node["processors"] = 16
    assert (build(node, part) is None) == (option == "evolving/none")


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_and_key_is_on_the_help_page(option):
    group, _, name = option.rpartition("/")
    assert re.search(rf"^ +{name} {{2,}}\S|^ +{name}\n {{30,}}\S", section(group), re.M), name
    part = option.split("/")[0]
    keys = {
        key.replace("predictor.before.", "predictor.").replace("policy.predictor.", "predictor.")
        for key in leaves({part: plain(option)[part]})
    }
    missing = {key for key in keys if not described(key)}
    assert missing == set()


def section(group):
    """Return what the page says of a group."""
    rest = PAGE.partition(f"  {group}=NAME\n")[2]
    return re.split(r"^  \S+=NAME$|^[A-Z]{3,}", rest, flags=re.MULTILINE)[0]


def described(key):
    return re.search(rf"^ +{re.escape(key)}(=\S*)? {{2,}}\S", PAGE, re.MULTILINE)


def test_every_closed_key_is_on_the_help_page():
    closed = OmegaConf.to_container(composed(), resolve=True)
    open_parts = ("workload", "moldability", "cluster", "evolving", "policy", "predictor")
    keys = leaves({name: value for name, value in closed.items() if name not in open_parts})
    assert {key for key in keys if not described(key)} == set()


def test_the_help_page_has_no_key_that_does_not_exist():
    known = set().union(*(leaves(plain(option)) for option in OPTIONS))
    known |= {"hydra.run.dir", "hydra.sweep.dir"}
    on_page = set(re.findall(r"^ +([a-z_]+(?:\.[a-z_0-9]+)*)(?:=\S*)? {2,}\S", PAGE, re.MULTILINE))
    names = {option.rpartition("/")[2] for option in OPTIONS + EXPERIMENTS + GIVEN}
    known |= {key[: dot.start()] for key in known for dot in re.finditer(r"\.", key)}
    assert {key for key in on_page if "." in key} <= known
    assert {key for key in on_page if "." not in key} <= known | names


def test_the_help_page_says_nothing_twice_in_a_row():
    lines = PAGE.splitlines()
    assert [one for one, other in itertools.pairwise(lines) if one == other] == []


def test_a_key_and_its_meaning_are_read_from_the_comment_behind_it(tmp_path, monkeypatch):
    monkeypatch.setattr("sim.help.pages.CONFIG_FOLDER", tmp_path)
    (tmp_path / "group" / "inside").mkdir(parents=True)
    (tmp_path / "config.yaml").write_text("defaults:\n  - group: one\n\nseed: 1  # of all\n")
    (tmp_path / "help.txt").write_text("before\n\n{keys}\n\nafter\n")
    one = "# The one.\n_target_: a.B\nwidth: 4  # how wide\ninside:\n  x: 3\n"
    (tmp_path / "group" / "one.yaml").write_text(one)
    two = "# The other, said\n# in two lines.\nwidth: 4\nheight: null  # how high,\n"
    (tmp_path / "group" / "two.yaml").write_text(f"{two}               # if at all\n")
    (tmp_path / "group" / "inside" / "deep.yaml").write_text("# Deep.\nx: [1, 2]  # how deep\n")
    lines = [re.sub(" {2,}", "  ", line.strip()) for line in page().splitlines()]
    assert lines == [
        *("before", "", "GROUP", "group=NAME", "one  The one."),
        "two  The other, said in two lines.",
        *("group.width=4  how wide", "group.height=null  two: how high, if at all"),
        *("group/inside=NAME", "deep  Deep.", "group.inside.x=[1,2]  how deep", ""),
        *("RUN", "seed=1  of all", "", "after"),
    ]


def test_every_option_says_what_it_is():
    folders = {(CONFIG_FOLDER / option).parent for option in OPTIONS + EXPERIMENTS + GIVEN}
    assert [
        (f.name, o.name)
        for f in folders
        for o in options(f.relative_to(CONFIG_FOLDER).as_posix())
        if not o.about
    ] == []


def test_help_shows_the_page_and_loads_nothing_heavy():
    command = [sys.executable, "-X", "importtime", "-m", "sim", "--help"]
    shown = subprocess.run(
        command, cwd=CONFIG_FOLDER.parent, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == PAGE.strip()
    lines = shown.stderr.splitlines()
    assert [line for line in lines if not line.startswith("import time:")] == []
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "hydra" in loaded
    heavy = {"numpy", "scipy", "pandas", "numba", "pyarrow", "matplotlib", "simpy", "rich"}
    assert loaded & heavy == set()


def test_every_experiment_is_on_the_help_page():
    listed = section("experiment")
    assert set(re.findall(r"^      (\w+)(?:  |$)", listed, re.M)) == {
        name.partition("/")[2] for name in EXPERIMENTS
    }


@pytest.mark.parametrize("option", GIVEN)
def test_every_option_of_given_composes_and_is_on_the_help_page(option):
    name = option.partition("/")[2]
    assert composed(f"given={name}").predictor.charge in (True, False)
    assert re.search(rf"^ +{name} {{2,}}\S", PAGE, re.M)


def test_every_experiment_composes():
    for name in EXPERIMENTS:
        assert composed(f"experiment={name.partition('/')[2]}").seed >= 0
