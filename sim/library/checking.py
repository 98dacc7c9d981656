"""``moldsim check NAME`` and `sim.check_plugin`: what is wrong with a part, before any run."""

import inspect
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from predictors.in_loop.learned import CurvePerApplication
from sim.composition import configuration
from sim.errors import BAD_INPUT, ConfigError, InvariantError, PluginError, SimError, one_line
from sim.help.pages import CONFIG_DIRS, meant, options, words_of
from sim.library.call import instance, literal
from sim.results.metrics import summarise
from sim.simulation.build import imported
from sim.simulation.parts import NEEDED, check_object, fits_as, given_object
from sim.simulation.scene import REPETITION, play, set_scene
from workloads.truth.options import TRUTH_KEYS

BAD_STATUS = 2
TOYS = ("moldability.malleable=0.5", "cluster.processors=32", "sim.check=true")
UNDER = {"predictor": ("easy", "sa", "equi"), "policy.reallocation": ("equi",)}
"""Policies under which toy jobs are played; EASY where nothing else is said."""
BEGINS = {1: "policy", 2: "policy.placement", 3: "policy.backfill"}
"""What begins with so many arguments."""
USAGE = """usage: moldsim check [--config-dir FOLDER] NAME [KEY=VALUE ...] ...

Simulates toy jobs with a part of your own, and says which of its answers cannot be used. NAME is a
class, such as my.Predictor, or an option, such as that of a package's policy; --config-dir FOLDER
says where options of your own are. KEY=VALUE behind a NAME are arguments of the class, or keys of
the option.
"""


def taken_for(made: Any) -> str:
    """Return the key of the part that an object can be.

    Raises
    ------
    ConfigError
        If it can be none, with what it lacks for the nearest.

    Examples
    --------
    >>> import sim
    >>> taken_for(sim.Easy()), taken_for(sim.ShortestFirst())
    ('policy.backfill', 'policy.order')
    """
    fitting = [key for key in NEEDED if fits_as(made, key)]
    if fitting and all(NEEDED[key] == NEEDED["policy"] for key in fitting):
        return BEGINS.get(len(inspect.signature(made.begin).parameters), "policy")
    if fitting:
        return max(fitting, key=lambda key: sum(map(len, NEEDED[key])))
    nearest = max(NEEDED, key=lambda key: sum(hasattr(made, one) for one in NEEDED[key].methods))
    check_object(made, nearest, f"{type(made).__name__}, taken for {nearest}")
    return nearest


def _play(key: str, overrides: Sequence[str], node: Mapping[str, Any]) -> None:
    """Play toy jobs with a node in the place of a part, if there is one."""
    config = configuration(overrides)
    group, _, inner = key.partition(".")
    kept = {*config[group]} if inner or not node else {*REPETITION, *TRUTH_KEYS}
    put = {inner: node} if inner and node else node
    config[group] = {name: one for name, one in config[group].items() if name in kept} | {**put}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summarise(play(config, config, set_scene(config, 0)).outcome)


def check_plugin(plugin: Any, **arguments: Any) -> str:
    """Play toy jobs with a part of your own, as a run would.

    Parameters
    ----------
    plugin : object, class or str
        A policy or a part of one, a predictor, a model of curves, a workload: an object, a
        class, its dotted name, or an option's name.
    **arguments
        Of the class, or keys of the option.

    Returns
    -------
    str
        What it was taken for, and what was tried.

    Raises
    ------
    SimError
        If it is no part, or answers what cannot be used: a line for each policy that met it.

    Examples
    --------
    >>> import sim
    >>> sim.check_plugin(sim.ShortestFirst())
    'ShortestFirst: taken for policy.order; toy jobs policy=easy: no problem found'
    """
    node: Mapping[str, Any] = {}
    chosen = [*TOYS]
    if isinstance(plugin, str) and "." not in plugin:
        groups = {key: key.replace(".", "/") for key in NEEDED}
        there = {one.name: key for key in reversed(groups) for one in options(groups[key])}
        if plugin not in there:
            ways = "--config-dir FOLDER finds those of a folder, my.Rule is a class with its module"
            raise ConfigError(f"{plugin}: there is no such option; {meant(plugin, there, ways)}")
        name, key = plugin, there[plugin]
        if lost := [one for one in CONFIG_DIRS if not one.is_dir()]:
            raise ConfigError(f"--config-dir {lost[0]}: there is no such folder")
        folders = [f"file://{one.resolve()}" for one in CONFIG_DIRS]
        chosen += [f"hydra.searchpath={literal(folders)}"] * bool(folders)
        chosen.append(f"{groups[key]}={name}")
        chosen += [f"{key}.{one}={value}" for one, value in arguments.items()]
    else:
        made: Any = imported(plugin, plugin) if isinstance(plugin, str) else plugin
        made = instance(made, "", **arguments) if inspect.isclass(made) else made
        name, key = type(made).__name__, taken_for(made)
        if key == "predictor.model":
            key, made = "predictor", CurvePerApplication(made, name)
        node = given_object(made, key)
    if key != "workload":
        chosen += ["workload.jobs=30", "workload.load=1.5"]
    under = [] if key == "policy" else [f"policy={one}" for one in UNDER.get(key, ("easy",))]
    problems, tried = [], [[*chosen, policy] for policy in under] or [chosen]
    if key.startswith("policy."):  # an oracle shows it curves, too
        tried += [[*one, "predictor=oracle"] for one in tried]
    for overrides in tried:
        try:
            _play(key, overrides, node)
        except (*BAD_INPUT, InvariantError) as error:
            problems.append(one_line(error))
    if problems:
        raise PluginError("\n".join(dict.fromkeys(problems)))
    played = " ".join(["toy jobs", *under])
    return f"{name}: taken for {key}; {played}: no problem found"


def main(given: Sequence[str]) -> int:
    """Check parts by their names; return the exit status."""
    if not given or {"--help", "-h"} & set(given):
        sys.stdout.write(USAGE)
        return 0 if given else BAD_STATUS
    status = 0
    asked: list[tuple[str, dict[str, Any]]] = []
    for word in words_of("moldsim check", given):
        key, sign, value = word.partition("=")
        if sign and asked:
            asked[-1][1][key] = yaml.safe_load(value)
        else:
            asked.append((word, {}))
    for name, arguments in asked:
        try:
            sys.stdout.write(f"{check_plugin(name, **arguments)}\n")
        except SimError as error:
            sys.stderr.writelines(f"error: {line}\n" for line in str(error).split("\n"))
            status = BAD_STATUS
    return status
