"""The studies behind docs/results: which presets they run, at which sizes, and a toy of each."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results import method_studies, others, speeds, world

FIGURES = ("mean_response_time",)
PREDICTED = (*FIGURES, "prediction_median_error")
SDSC, NASA = "traces/SDSC-SP2-1998-4.2-cln.swf.gz", "traces/NASA-iPSC-1993-3.1-cln.swf.gz"
ATLAS = "traces/LLNL-Atlas-2006-2.1-cln.swf.gz"
SLURM_SAMPLE = "traces/slurm-micro-sacct-2021.txt.gz"
CURVES = "scaling"
LOGS = {"SDSC-SP2": SDSC, "NASA-iPSC": NASA, "LLNL-Atlas": ATLAS}
THETA, KABRE = "traces/ALCF-Theta-2022.swf.gz", "traces/kabre-sacct-2024.csv.gz"
FIVE = {
    **{f"{name}": f"workload=swf workload.path=DATA/{path}" for name, path in LOGS.items()},
    "ALCF Theta": f"workload=swf workload.path=DATA/{THETA}",
    "Kabré": f"workload=sacct workload.path=DATA/{KABRE} workload.timezone=America/Costa_Rica",
}
JUDGED = ("SDSC-SP2", "LLNL-Atlas")
"""Logs on which predictors are compared."""
LEARNED = "adept,consensus,regression,amdahl"


@dataclass(frozen=True)
class Sweep:
    """A multirun of a preset: ``python -m sim.study PRESET OVERRIDES``, DATA naming the folder.

    Attributes
    ----------
    asked : str
    labels : dict
        What its rows are called by, beside the keys that differ between its runs.
    """

    asked: str
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Study:
    """What one folder of docs/results holds.

    Attributes
    ----------
    sweeps : sequence of Sweep
    jobs, replications : int
        Of each run at full size.
    figures : sequence of str
        Keys of the summary to keep of each replication.
    toy : str, optional
        Overrides of a run of a second, recomputed by a test.
    inputs : sequence of str
        Files and folders below the data folder.
    special : callable, optional
        Gives further data, from the data folder and whether toy size is asked for.
    program : str, optional
        Environment variable that names a program without which it is skipped.
    timed : bool
        Whether it measures speed: not at toy size.
    """

    sweeps: tuple[Sweep, ...] = ()
    jobs: int | None = None
    replications: int = 1
    toy: str = ""
    figures: tuple[str, ...] = FIGURES
    inputs: tuple[str, ...] = ()
    special: Callable[[Path, bool], dict[str, Any]] | None = None
    program: str = ""
    timed: bool = False


SIZES = {
    "known": "workload.size=known workload.size_noise=0.1",
    "classes": "workload.size=hidden workload.sizes=3",
    "hidden": "workload.size=hidden",
}
SHAPES = {
    "model": "moldability=downey",
    "measured": "moldability=measured moldability.path=DATA/scaling moldability.first_count_max=1",
}
PLACES = {"Lublin's model": "workload=lublin"} | {
    name: f"workload=swf workload.path=DATA/{path}" for name, path in LOGS.items()
}


def impact(place: str) -> tuple[Sweep, ...]:
    """Return the sweeps of predictor impact on a model, or the fewer ones on a log."""
    swept, whole = [], place not in LOGS
    for shape, curves in SHAPES.items():
        for size, sizes in SIZES.items():
            base = f"predictor_impact {PLACES[place]} {curves} {sizes} workload.applications=50"
            labels = {"place": place, "curves": shape, "sizes": size}
            believed = "user_estimate,oracle" if size == "known" or whole else "user_estimate"
            swept.append(
                Sweep(
                    f"{base} given=online policy=easy predictor={believed}", labels | {"given": "–"}
                )
            )
            swept.append(
                Sweep(
                    f"{base} given=online policy=sa_easy predictor=oracle", labels | {"given": "–"}
                )
            )
            for given in ("free", "charged", "online"):
                learned = LEARNED if size == "known" else "adept,consensus"
                asked = f"{base} given={given} policy=sa_easy predictor={learned}"
                swept.append(Sweep(asked, labels | {"given": given}))
            if size == "known" and whole:
                noisy = "noisy_oracle_10,noisy_oracle,noisy_oracle_50,noisy_oracle_100"
                swept.append(
                    Sweep(
                        f"{base} given=online policy=sa_easy predictor={noisy}",
                        labels | {"given": "–"},
                    )
                )
                swept.append(
                    Sweep(
                        f"{base} given=charged policy=iterative,fair_share "
                        "predictor=oracle,adept,consensus",
                        labels | {"given": "charged"},
                    )
                )
        if not whole:
            base = f"predictor_impact {PLACES[place]} {curves} given=recorded"
            mine = {"place": place, "curves": shape, "sizes": "hidden", "given": "recorded"}
            swept.append(Sweep(f"{base} policy=easy predictor=user_estimate", mine))
            swept.append(Sweep(f"{base} policy=sa_easy predictor=oracle,{LEARNED}", mine))
    return tuple(swept)


def impact_study(place: str) -> Study:
    log = LOGS.get(place)
    return Study(
        impact(place),
        400 if log else 600,
        8,
        "experiment=predictor_impact policy=sa_easy predictor=adept given=charged",
        (*PREDICTED, "share_fitted_starts", "given_work_share"),
        (CURVES, *([log] if log else [])),
    )


def on_logs() -> tuple[Sweep, ...]:
    """Return the sweeps of the default rule, and of what a site would pick instead, on logs."""
    swept = []
    for log, place in FIVE.items():
        base = f"backfill_or_mold {place}"
        learned = f"{LEARNED},universal_scalability,oracle" if log in JUDGED else "adept"
        asked = [
            "policy=easy,easy_sjbf predictor=user_estimate",
            "policy=easy_plus predictor=last_two",
            f"policy=sa_easy predictor={learned}",
        ]
        asked += [f"policy=easy predictor={learned}"] if log in JUDGED else []
        swept += [Sweep(f"{base} {one}", {"log": log}) for one in asked]
    return tuple(swept)


# These, and what is compared with heSRPT and with calibration, are also of rules in
# examples/published_rules, which must be installed for the studies to be made anew.
TWENTY = (
    "fcfs,easy,easy_plus,conservative,sa,sa_easy,greedy,aggressive,fair_share,iterative,"
    "utilization,knee,efficiency,asp,a_plus,queue_time,scojo_p,lpa,equi,hesrpt,pools"
)
CLAIMS = tuple(
    Sweep(f"{name} {more}".strip(), {"preset": name})
    for name, more in (
        ("molding_by_load", "policy=easy,conservative,sa,scojo,scojo_p"),
        ("molding_of_downey", ""),
        ("parallelism_and_load", ""),
        ("whole_queue", ""),
        (
            "scalability",
            "policy=easy,conservative,sa,aggressive,fair_share,iterative,scojo,scojo_p",
        ),
        ("one_fraction", "policy=easy,sa,asp,aep,downey_asp,fair_share,iterative,utilization"),
        ("herd", "policy=sa"),
    )
)
FREE = "predictor.charge=false"
PUBLISHED = f"{FREE} ++policy.allocation.margin=0 ++policy.allocation.without_curve=request"
AS_PUBLISHED = dict.fromkeys(
    ("load_aware", "sa_easy", "sa_easy_usual"), f"{PUBLISHED} ++policy.backfill.anew=null"
)
"""SA as its paper has it, by policy."""
STUDIES = {
    **{
        f"impact_{name}": impact_study(place)
        for name, place in (
            ("lublin", "Lublin's model"),
            ("sdsc", "SDSC-SP2"),
            ("nasa", "NASA-iPSC"),
            ("atlas", "LLNL-Atlas"),
        )
    },
    "policies": Study(
        (
            Sweep(f"policy_comparison menu=powers_of_two predictor=adept policy={TWENTY}"),
            Sweep(f"policy_comparison menu=powers_of_two predictor=oracle policy={TWENTY}"),
            Sweep("policy_comparison menu=powers_of_two policy=easy predictor=user_estimate"),
        ),
        400,
        8,
        "experiment=policy_comparison menu=powers_of_two policy=iterative",
        PREDICTED,
    ),
    "claims": Study(
        CLAIMS,
        1000,
        10,
        "experiment=whole_queue policy=iterative",
        (*FIGURES, "mean_response_time_over_bound", "mean_allocated_processors"),
        special=others.queue_times,
    ),
    "load": Study(
        (
            Sweep("load_sweep policy=easy predictor=user_estimate workload.load=0.3,0.6,0.9"),
            Sweep(
                "load_sweep policy=sa_easy,iterative predictor=oracle,adept "
                "workload.load=0.3,0.6,0.9"
            ),
        ),
        500,
        8,
        "experiment=load_sweep policy=sa_easy predictor=adept workload.load=0.9",
    ),
    "repetition": Study(
        tuple(
            Sweep(
                f"repetition policy={policy} predictor={predictor} workload.applications={a} "
                f"workload.sizes={s} workload.size_noise={n}",
                {"varied": varied},
            )
            for varied, a, s, n in (
                ("applications", "10,50,200,1000", "null", "0.1"),
                ("sizes", "50", "1,5", "0.1"),
                ("noise", "50", "null", "0,0.3,1"),
            )
            for policy, predictor in (
                ("easy", "user_estimate"),
                ("sa_easy", "oracle,adept"),
            )
        ),
        500,
        8,
        "experiment=repetition workload.applications=10 workload.size_noise=0.3",
        PREDICTED,
    ),
    "calibration": Study(
        (
            Sweep(
                "calibration policy=sa_easy predictor=adept,consensus "
                "predictor.calibration=0,3,6 predictor.charge=false,true"
            ),
            Sweep("load_sweep policy=easy predictor=user_estimate workload.load=0.6"),
            Sweep("load_sweep policy=sa_easy predictor=oracle workload.load=0.6"),
            Sweep("explore policy=sa,explore predictor.calibration=0,3 workload.load=0.5,0.8"),
            Sweep("load_sweep policy=sa predictor=oracle workload.load=0.5,0.8"),
        ),
        500,
        8,
        "experiment=calibration predictor.calibration=6",
        (*PREDICTED, "share_fitted_starts", "given_work_share", "makespan"),
    ),
    "malleable": Study(
        (
            Sweep("malleable_share policy=easy", {"preset": "share"}),
            Sweep(
                "malleable_share policy=pools moldability.share=0.2,0.4,0.6,1 "
                "policy.reallocation.strategy=min,pref,average",
                {"preset": "share"},
            ),
            Sweep(
                "malleable_share policy=pools moldability.share=0.2,0.4,0.6,1 "
                "policy.reallocation.reclaim=false",
                {"preset": "share, no reclaim"},
            ),
            Sweep(
                "malleable_batch replications=3 moldability.exponent_min=0.3,0.5,0.9 "
                "policy=hesrpt,equi,hell,knee_first",
                {"preset": "batch"},
            ),
            Sweep(
                "malleable_rules policy=easy,easy_plus,equi,deq,hesrpt,hell,knee_first,pools,"
                "expand,marginal,pdpa",
                {"preset": "rules"},
            ),
            Sweep(
                "malleable_curves policy=marginal given=free moldability=downey,general",
                {"preset": "curves"},
            ),
            Sweep(
                "malleable_curves given=free moldability=downey,general policy=equi "
                "~policy.reallocation.weight predictor=oracle",
                {"preset": "curves"},
            ),
        ),
        300,
        8,
        "experiment=malleable_rules policy=hesrpt",
        (*FIGURES, "makespan", "system_efficiency", "reallocations", "reallocation_time"),
    ),
    "shared": Study(
        tuple(
            Sweep(
                f"{preset} policy={policy} cluster.belief={beliefs} {key}={levels} "
                f"{AS_PUBLISHED.get(policy, FREE)}",
                {"preset": preset},
            )
            for preset, key, levels in (
                ("shared_load", "cluster.cpu.at_once", "'[1,4],[1,48]'"),
                ("shared_bursts", "cluster.cpu.free", "'[52829,158488],[6488,19464]'"),
            )
            for policy, beliefs in (
                ("easy", "mean"),
                ("easy_fastest", "oracle,forecast,last"),
                ("sa_easy_usual", "mean"),
                ("sa_easy", "oracle,forecast,last"),
                ("load_aware", "oracle,forecast,last"),
            )
        ),
        40,
        8,
        "experiment=shared_load policy=easy_fastest cluster.belief=forecast cluster.processors=16",
        PREDICTED,
    ),
    "evolving": Study(
        (
            Sweep("walltime", {"preset": "walltime"}),
            Sweep("better_ends", {"preset": "better_ends"}),
            Sweep("ill_nodes baseline=easy", {"preset": "ill_nodes"}),
            Sweep("longer_limits policy=easy,conservative", {"preset": "longer_limits"}),
            Sweep("more_processors", {"preset": "more_processors"}),
        ),
        100,
        8,
        "experiment=walltime evolving.stop_in_time=false",
        (*FIGURES, "restarts", "lost_work", "makespan"),
    ),
    "world": Study(special=world.world),
    "logs": Study(
        on_logs(),
        500,
        40,
        "experiment=backfill_or_mold policy=sa_easy predictor=adept",
        (*PREDICTED, "steady", "window_begin", "molded_jobs"),
        (SDSC, NASA, ATLAS, THETA, KABRE),
    ),
    "backtest": Study(
        toy="policy=easy predictor=user_estimate baseline=null",
        inputs=tuple(f"traces/{files[0]}" for files in others.LOGS.values()),
        special=others.backtests,
    ),
    "tutorial": Study(
        toy="policy=conservative predictor=amdahl moldability.share=0.5",
        inputs=(SDSC, SLURM_SAMPLE),
        special=others.tutorial,
    ),
    "advice": Study(
        toy="policy=easy predictor=user_estimate baseline=null moldability=downey",
        inputs=(CURVES, *(f"traces/{file}" for file in others.JUDGED)),
        special=others.advice,
    ),
    "accuracy": Study(inputs=(CURVES,), special=method_studies.curve_errors),
    "accuracy_extrap": Study(
        inputs=(CURVES,), special=method_studies.extrap_errors, program=method_studies.EXTRAP
    ),
    "cycles": Study(special=method_studies.cycle_errors),
    "rational": Study(special=method_studies.rational_errors),
    "figure_4": Study(special=method_studies.figure_4_errors),
    **{
        f"performance_{name}": Study(inputs=inputs, special=special, timed=True)
        for name, (special, inputs) in speeds.SPEEDS.items()
    },
}
"""By the name of their folder."""
