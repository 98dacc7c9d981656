"""What is composed once per shape of a sweep is what Hydra composes from the start."""

import shutil

import hydra
import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from sim.composition import compose, prepare
from sim.config import CONFIG_FOLDER, register
from sim.errors import ConfigError
from sim.sweeps import shapes

pytestmark = pytest.mark.fast
GROUPS = (*("policy", "predictor", "workload", "moldability", "cluster", "evolving", "given"),)
ROUNDS = 3
VALUES = ("workload.jobs=7", "seed=${replications}", "sim={check: true}", "+workload.odd=[1,a]")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, in memory and on the disk."""
    monkeypatch.setenv("MOLDSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(shapes, "_kept", {})
    return tmp_path / "cache" / "composed"


def loaded(overrides, folder=CONFIG_FOLDER, kind=None):
    """Return what a loader composes, that of the program by default."""
    prepare()
    with hydra.initialize_config_dir(str(folder), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        if kind is not None:
            register()
            loader = kind(loader.config_search_path)
        return loader.load_configuration("config", list(overrides), RunMode.RUN)


def same(overrides):
    """Compose from the start, then anew and as it was kept; return whether all are one."""
    found = [loaded(overrides, kind=kind) for kind in (ConfigLoaderImpl, None, None)]
    return len({OmegaConf.to_yaml(one) for one in found}) == 1


def choice(group, number):
    names = sorted(path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml"))
    step = max(len(names) // ROUNDS, 1)
    return f"{group}={names[number * step % len(names)]}"


@pytest.mark.slow
@pytest.mark.parametrize("number", range(ROUNDS))
def test_all_groups_come_out_as_hydra_composes_them(number, cache):
    shape = [choice(group, number) for group in GROUPS]
    assert same([*shape, "seed=3", "objective=x", "hydra.run.dir=here"])
    assert len(list(cache.iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        [*VALUES, "++workload.jobs=8", "~workload.types", "workload.jobs=9"],
        ["policy/order=sjf", "policy/allocation=efficiency", "seed=2"],
        ["experiment=[herd,cycles]", "replications=2"],
        ["policy={order: null}", "hydra/launcher=basic", "hydra.job.env_copy=[HOME]"],
    ],
)
def test_additions_deletions_and_whole_groups_too(overrides, cache):
    assert same(overrides)


def test_other_values_are_of_the_same_shape(cache, monkeypatch, tmp_path):
    assert same(["policy=easy", "seed=1", "workload.jobs=5"])
    before = [*cache.iterdir()]
    monkeypatch.setattr(shapes, "_kept", {})
    monkeypatch.setattr(ConfigLoaderImpl, "_load_configuration_impl", None)
    monkeypatch.chdir(tmp_path)  # nothing is composed now
    found = loaded(["policy=easy", "seed=2", "workload.jobs=6", "sim.progress=false"])
    assert (found.seed, found.workload.jobs) == (2, 6)
    assert found.hydra.runtime.cwd == str(tmp_path)
    assert found.hydra.job.override_dirname == "policy=easy,seed=2,workload.jobs=6"
    assert [*cache.iterdir()] == before


@pytest.mark.slow
def test_what_is_refused_is_refused_in_the_same_words(cache):
    said = set()
    for _ in range(2):
        with pytest.raises(ConfigError) as refused:
            compose(["policy=easy", "seed=abc"])
        said.add(str(refused.value))
        compose(["policy=easy", "seed=1"])
    assert len(said) == 1


def test_a_changed_file_is_read_again_and_others_configurations_are_not_kept(cache, tmp_path):
    folder = tmp_path / "conf"
    shutil.copytree(CONFIG_FOLDER, folder)
    assert loaded(["policy=easy"], folder).seed == 1
    config = folder / "config.yaml"
    config.write_text(config.read_text("utf-8").replace("\nseed: 1 ", "\nseed: 11 "), "utf-8")
    assert loaded(["policy=easy"], folder).seed == 11
    assert not cache.exists()


def test_what_is_damaged_or_others_could_have_written_is_not_used(cache):
    loaded(["policy=easy"])
    (kept,) = cache.iterdir()
    for mode, content in ((0o620, None), (0o600, b"changed")):
        kept.write_bytes(b"changed")
        kept.chmod(mode)
        shapes._kept.clear()
        assert shapes._recalled(kept.name, lasts=True) == content
    assert loaded(["policy=easy"]).policy.order._target_
