"""Random configurations: legal ones over all groups, wrong ones, and odd values of every key."""

import contextlib
import io
import json
import math
import random
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hydra.core.global_hydra import GlobalHydra

from sim.app import main
from sim.config import CONFIG_FOLDER
from sim.errors import SimError
from sim.results.metrics import summarise
from sim.simulation.scene import play, set_scene
from sim.warm import configuration

UNFIT = {"policy": {"recorded"}, "moldability": {"measured"}, "cluster/cpu": {"recorded"},
         "cluster/network": {"recorded"}}  # fmt: skip
"""Options that need a file of the user's."""
NUMBERS = {
    "workload.load": ("0.3", "0.7", "1.1"),
    "cluster.processors_per_node": ("1", "2", "4"),
    "seed": tuple(map(str, range(1, 1000))),
    "overrun": ("extend", "kill"),
    "menu": ("null", "powers_of_two", "all"),
}
SHARED = {
    "cluster.belief": ("forecast", "last", "oracle", "mean"),
    "cluster.sample_per": ("processor", "node"),
    "cluster.renew": ("null", "600"),
    "cluster.sample_noise": ("0", "0.1"),
}
FAILING = {
    "cluster.mtbf": ("1e4", "1e5", "1e6"),
    "cluster.requeue": ("head", "tail"),
    "cluster.shrink_off_failed": ("true", "false"),
    "cluster.lifetimes": ("exponential", "weibull"),
    "cluster.repair_median": ("null", "1800"),
}
EVOLVING = {
    "evolving.resubmit": ("true", "false"),
    "evolving.stop_in_time": ("true", "false"),
    "evolving.asks.memory": ("true", "false"),
    "evolving.asks.walltime": ("true", "false"),
    "evolving.asks.efficiency": ("null", "0.5"),
}
WRONG = (
    *("nan", "inf", "-inf", "-1", "0", "1e308", "1e-320", "-0.0", "1.5", "99999999999999999999"),
    *("foo", "''", "null", "true", "[]", "{}", "[foo]", "{a: 1}", "1e-5", "1000001", "«»", "a b"),
    *("sim.study.subprocess", "os.system", "[1e-9,1e-9]", "../..", "'='", "%", "${nothing}"),
)
"""Values of which most are wrong for most keys; a million jobs are legal, and long."""
ODD = ("1e300", "1e-300", "-1e300", "-1", "-0.5", "null", "2", "text", "nan", "inf", "0", "1e15")
"""Values that every key is given; see `is_absurd`."""
SMALL = ("workload.jobs=6", "cluster.processors=16", "cluster.processors_per_node=2")
LOADED = ("policy=easy", "cluster=shared", "cluster.history=1200", *SMALL)
FILES = {
    "swf": "".join(
        f"{k} {k * 50} 0 {100 + k * 7} {1 + k % 8} -1 -1 {1 + k % 8} 600 -1 1 1 1 1 1 -1 -1 -1\n"
        for k in range(1, 9)
    ),
    "table": "submit,runtime,processors,requested_time,user\n"
    + "".join(f"{k * 50},{100 + k * 7},{1 + k % 8},600,u{k % 3}\n" for k in range(8)),
    "sacct": "JobID|User|Submit|Start|End|State|AllocCPUS|ReqCPUS|Timelimit\n"
    + "".join(
        f"{k}|u|2020-01-01T00:0{k}:00|2020-01-01T00:1{k}:00|2020-01-01T01:0{k}:00|COMPLETED|2|2|"
        "02:00:00\n"
        for k in range(1, 9)
    ),
    "batsim": json.dumps({
        "nb_res": 16,
        "profiles": {"a": {"type": "delay", "delay": 100}},
        "jobs": [
            {"id": str(k), "subtime": k * 50, "walltime": 600, "res": 1 + k, "profile": "a"}
            for k in range(8)
        ],
    }),
    "cpu": "start_time,end_time,node,available_cpu\n0,3600,0,0.5\n",
    "network": "start_time,end_time,source,destination,available_bandwidth\n0,3600,0,1,0.5\n",
    "measured": "application,nprocs,runtime_s\n"
    + "".join(f"a,{n},{100 / n + 3}\n" for n in (1, 2, 4, 8, 16)),
}  # fmt: skip


def options(group: str) -> list[str]:
    """Return the options of a group that need nothing of a user's."""
    found = {path.stem for path in (CONFIG_FOLDER / group).glob("*.yaml")}
    return sorted(found - UNFIT.get(group, set()))


def some(dice: random.Random, choices: dict[str, tuple[str, ...]], share: float) -> list[str]:
    """Return an override for a share of the keys."""
    return [f"{k}={dice.choice(v)}" for k, v in choices.items() if dice.random() < share]


def part_of(policy: str, part: str, option: str) -> str:
    """Return the override of a part of a policy, which its preset may name or not."""
    preset = (CONFIG_FOLDER / "policy" / f"{policy}.yaml").read_text(encoding="utf-8")
    return f"{'' if f'- {part}: ' in preset else '+'}policy/{part}={option}"


def legal(dice: random.Random) -> list[str]:
    """Return the overrides of a small run of parts that may not go together."""
    workload = dice.choice(["lublin", "downey", "decks"])
    cluster = dice.choice(["dedicated", "dedicated", "shared", "failing"])
    drawn = [f"workload={workload}", f"cluster={cluster}", "baseline=null", "sim.check=true"]
    drawn += some(dice, NUMBERS, 0.5)
    policy = dice.choice(options("policy"))
    drawn.append(f"policy={policy}")
    for part in ("order", "backfill", "allocation", "reallocation", "placement"):
        if dice.random() < 0.15:
            drawn.append(part_of(policy, part, dice.choice(options(f"policy/{part}"))))
    drawn += [f"predictor={dice.choice(options('predictor'))}"]
    if workload == "decks":
        drawn = [one for one in drawn if not one.startswith("workload.load")]
        drawn += ["workload.cycles=40", f"evolving={dice.choice(['none', 'adaptive'])}"]
        if drawn[-1].endswith("adaptive"):
            drawn += some(dice, EVOLVING, 0.3)
            drawn.append(part_of(policy, "grants", dice.choice(options("policy/grants"))))
    else:
        drawn.append(f"workload.jobs={dice.choice([1, 2, 8, 25])}")
        drawn.append(f"cluster.processors={dice.choice([16, 32, 128])}")
        if workload == "lublin":
            drawn.append(f"moldability={dice.choice(options('moldability'))}")
    if cluster == "shared":
        drawn += [f"cluster/{part}={dice.choice(options(f'cluster/{part}'))}"
                  for part in ("cpu", "network")]  # fmt: skip
        drawn += [*some(dice, SHARED, 0.5), "cluster.history=1200"]
    return drawn + (some(dice, FAILING, 0.5) if cluster == "failing" else [])


def try_legal(dice: random.Random) -> str:
    """Play a random configuration with all checks on; say how it ended."""
    overrides = legal(dice)
    try:
        config = configuration(overrides)
        summary = summarise(play(config, config, set_scene(config, 0)).outcome)
    except SimError as error:
        said = str(error)
        return f"refused: {said}" if said and "\n" not in said else f"FOUND: refused by {said!r}"
    numbers = [v for v in summary.values() if isinstance(v, float)]
    return "played" if all(map(math.isfinite, numbers)) else "FOUND: a figure is not finite"


def leaves(config: Any, name: str = "") -> list[str]:
    """Return the keys of all values in a configuration."""
    if not isinstance(config, dict) or not config:
        return [name]
    return [
        leaf for key, value in config.items() for leaf in leaves(value, f"{name}.{key}".strip("."))
    ]


def every_part(folder: Path) -> list[tuple[str, list[str]]]:
    """Return for each option of each group, inner ones too, its key and a small run of it."""
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    easy, rigid = ["policy=easy", *SMALL], ["predictor=user_estimate", *SMALL]
    cycles = ["policy=easy", "workload=decks", "workload.cycles=30"]
    found = [("", easy)]
    found += [("policy", [f"policy={one}", *rigid]) for one in options("policy")]
    for part in ("order", "backfill", "allocation", "reallocation", "placement", "grants"):
        found += [(f"policy.{part}", ["policy=sa", part_of("sa", part, one), *rigid])
                  for one in options(f"policy/{part}")]  # fmt: skip
    found += [("policy.reallocation.cost",
               ["policy=equi", f"policy/reallocation/cost={one}", *rigid])
              for one in options("policy/reallocation/cost")]  # fmt: skip
    found += [("predictor", [f"predictor={one}", *SMALL]) for one in options("predictor")]
    found += [("moldability", [f"moldability={one}", *easy]) for one in options("moldability")]
    found += [("moldability", ["moldability=measured", f"moldability.path={folder}/measured",
                               *easy])]  # fmt: skip
    found += [("cluster", ["cluster=failing", *easy]), ("cluster", [*LOADED])]
    for part in ("cpu", "network"):
        found += [(f"cluster.{part}", [*LOADED, f"cluster/{part}={one}"])
                  for one in options(f"cluster/{part}")]  # fmt: skip
        found += [(f"cluster.{part}", [*LOADED, f"cluster/{part}=recorded",
                                       f"cluster.{part}.path={folder}/{part}"])]  # fmt: skip
    found += [("evolving", [*cycles, "evolving=adaptive", "cluster=failing",
                            f"evolving/interval={one}"])
              for one in options("evolving/interval")]  # fmt: skip
    found += [("workload", [f"workload={one}", *easy]) for one in ("lublin", "downey")]
    found += [("workload", cycles)]
    found += [("workload", ["policy=easy", f"workload={one}", f"workload.path={folder}/{one}"])
              for one in ("swf", "table", "sacct", "batsim")]  # fmt: skip
    return [(key, [*overrides, "baseline=null"]) for key, overrides in found]


def is_absurd(value: str, usual: Any, key: str) -> bool:
    """Say whether no run can be what is asked for, so that the value must be refused."""
    if value in ("1e300", "1e-300", "-1e300", "nan"):
        return not isinstance(usual, str | list)  # which may be text
    if value == "inf":
        return isinstance(usual, int | float) and not key.endswith(".q")
    if value == "text":
        return isinstance(usual, int | float)
    return isinstance(usual, bool) and value in ("2", "-1", "-0.5", "0", "1e15", "null")


def try_odd(dice: random.Random) -> str:
    """Give one key of any part an odd value; say how the command ended."""
    with tempfile.TemporaryDirectory() as folder:
        part, base = dice.choice(every_part(Path(folder)))
        try:
            config = configuration(base)
        except SimError as error:
            return f"FOUND: {' '.join(base)}: {error}"
        below = [key for key in leaves(config) if key.startswith(part)]
        key = dice.choice([key for key in below if not key.endswith("_target_")] or ["seed"])
        value, usual = dice.choice(ODD), config
        for name in key.split("."):
            usual = usual[name]
        end = command([*base, f"{key}={value}"])
    if end == "accepted" and is_absurd(value, usual, key):
        return f"FOUND: {key}={value} was accepted ({' '.join(base)})"
    if end.startswith("refused") and key.rpartition(".")[2] not in end:
        return f"FOUND: {key}={value} {end}, which does not name it"
    return end


def wrong(dice: random.Random) -> list[str]:
    """Return overrides of which the last is probably wrong."""
    base = [one for one in legal(dice) if "=" in one and not one.startswith("sim.check")]
    try:
        config = configuration(base)
    except SimError:
        base = ["workload.jobs=5", "baseline=null"]
        config = configuration(base)
    keys = [key for key in leaves(config) if not key.startswith(("hydra", "seed"))]
    key, kind = dice.choice(keys), dice.random()
    if kind < 0.75:
        last = f"{key}={dice.choice(WRONG)}"
        return [*base, "workload.jobs=1.5" if last == "workload.jobs=1000001" else last]
    if kind < 0.85:
        place = dice.randrange(len(key))
        return [*base, f"{key[:place]}{dice.choice('xyz_.')}{key[place + 1 :]}=1"]
    if kind < 0.95:
        group = dice.choice(["policy", "predictor", "workload", "cluster", "moldability"])
        return [*base, f"{group}={dice.choice(WRONG)}"]
    return [
        *base,
        dice.choice(["policy", "=", "policy/=easy", "+a=b=c", "~policy", "[", "policy=sa,"]),
    ]


def try_wrong(dice: random.Random) -> str:
    """Give a wrong configuration to the command line; say how it ended."""
    return command(wrong(dice))


def command(overrides: list[str]) -> str:
    """Give overrides to the command line; say how it ended."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        arguments = ["python -m sim", "picture=none", *overrides, "hydra.run.dir=run"]
        with (
            patch.object(sys, "argv", arguments),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
            finally:
                GlobalHydra.instance().clear()
        finished = Path("run/summary.json").exists()
    said = [line for line in err.getvalue().splitlines() if line.startswith("error:")]
    shown = " ".join(overrides[-1:])
    if "Traceback" in err.getvalue() or status not in (0, 2):
        return f"FOUND: {shown}: status {status}: {err.getvalue()[-300:]!r}"
    if status == 2 and (len(said) != 1 or finished):
        return f"FOUND: {shown}: {len(said)} lines of error, finished: {finished}"
    return "accepted" if status == 0 else "refused: " + said[0].removeprefix("error: ")
