"""What a run's tables and its summary hold: the meaning of each column and kind of figure."""

from collections.abc import Iterator
from fnmatch import fnmatchcase

COLUMNS = {
    "jobs.parquet": {
        "job_id": "the workload's number of the job; negative: a run that trained the predictor",
        "user": "number of the user, -1 where unknown",
        "user_name": "what the log calls the user, where it has names",
        "application_name": "what its jobs share in the log, where that has names",
        "application": "number of the application whose curve the job has",
        "size": "problem size as predictors see it; null where hidden",
        "submit_time": "when the job came",
        "start_time": "first start",
        "end_time": "last end",
        "wait_time": "start - submit",
        "response_time": "end - submit, also called turnaround",
        "bounded_slowdown": "max(1, response / max(reference runtime, 10 s))",
        "requested_processors": "reference count: what the user asked for",
        "requested_time": "the user's estimate",
        "reference_runtime": "true runtime at the reference count",
        "allocated_processors": "processors at the start, of the last run after a restart",
        "runtime": "of the last run",
        "held_area": "processors x seconds over all runs",
        "efficiency": "T(1) / held area, from the true curve; null unless completed",
        "believed_runtime": "the scheduler's estimate at the start, at the allocated count",
        "status": "completed, killed, failed, ...",
        "restarts": "runs after the first",
        "evolving": "whether the job's work changes from cycle to cycle",
        "lost_work": "held for computation that was thrown away",
        "checkpoint_overhead": "held for writing checkpoints",
        "restart_overhead": "held for reading checkpoints",
        "reason": "why a job was given up",
        "recorded_start_time": "when the log says that the job started, on logs with waits",
    },
    "allocations.parquet": {
        "job_id": "the job",
        "run": "which of its runs, from 0",
        "start_time": "from when on it held these processors",
        "end_time": "until when",
        "processors": "how many",
        "nodes": "which: intervals of processor numbers, such as 0-3,7; null where unknown",
    },
    "timeline.parquet": {
        "time": "of a change",
        "busy_processors": "held from then on",
        "queued_jobs": "waiting from then on",
        "queued_processors": "asked for by waiting jobs from then on",
    },
    "predictions.parquet": {
        "job_id": "the job that started",
        "time": "of its start",
        "application": "number of its application",
        "nprocs": "processors that it got",
        "size": "problem size as predictors see it",
        "predicted": "runtime predicted for that count",
        "actual": "actual runtime; null where the run did not complete",
        "method": "method that made the prediction",
        "observations": "finished runs that the prediction rests on",
        "reliability": "note, warning, unusable, or empty; exact of oracles, stated of users",
        "runs_at_count": "finished runs at that count in the history; null without any",
        "mean_at_count": "their geometric mean, brought to this job's size and load",
    },
    "requests.parquet": {
        "job_id": "the job that asked while it ran",
        "run": "in which of its runs",
        "time": "when",
        "kind": "what for: more, fewer, walltime",
        "held_processors": "that it had",
        "wanted_processors": "that it asked for",
        "wanted_seconds": "beyond its limit",
        "outcome": "granted, refused, withdrawn, ...",
        "answered_time": "when it was answered",
        "denied_time": "that the run would have saved on the processors asked for",
    },
}
"""Meaning of each column by table; the units are in `sim.results.artefacts.UNITS`."""
FIGURES = {
    "jobs *_jobs users starts restarts unfinished_jobs": (
        "how many: all that count, completed, killed, failed, dropped at load, evolving"
    ),
    "molded_jobs jobs_below_requests resized_jobs decisions_by_belief": (
        "jobs that start on another number of processors than requested; on fewer than any job "
        "requests; whose number changes while they run; starts decided on the predictor's own "
        "prediction"
    ),
    "mean_* median_* p95_* p99_* max_*": "over jobs, or over time for queues",
    # Feitelson & Rudolph 1998
    "*_wait_time *_response_time *_slowdown": (
        "start - submit; end - submit; response over the reference runtime"
    ),
    # Feitelson et al. 1997; Zotkin & Keleher 1999
    "*_bounded_slowdown *_processor_bounded_slowdown": (
        "max(1, response / max(reference runtime, 10 s)); the same over the reference count"
    ),
    # Ernemann, Song & Yahyapour 2003
    "area_weighted_*": "means weighted by reference count x reference runtime",
    "narrow_short_* narrow_long_* wide_short_* wide_long_*": (
        "of jobs by request: narrow up to 8 processors (up to the median request where none asks "
        "for so few), short up to an hour"
    ),
    # Jain, Chiu & Hawe 1984
    "jain_*": "fairness over jobs and over users",
    # Law 2015
    "steady_*": "the same without metrics.warmup and metrics.cooldown",
    "makespan processors held_area": (
        "last end - first submit; size of the machine; processor-seconds held"
    ),
    # Feitelson et al. 1997; Eager, Zahorjan & Lazowska 1989
    "utilization useful_utilization system_efficiency mean_efficiency": (
        "held area over processors x makespan; sum of T(1) over processors x makespan; sum of "
        "T(1) over held area; mean of the jobs' efficiencies"
    ),
    # Feitelson 2015
    "offered_load work_load": "by reference counts; by sum of T(1)",
    # Zhang et al. 2003
    "loss_of_capacity*": (
        "idle share while a job waits that would fit, on its least count or as requested"
    ),
    "steady steady_load window_begin": (
        "whether the queue settles, so that means do not depend on the run's length (null "
        "below 100 jobs); where it does not settle, the largest load of a grid at which it does; "
        "first submit of a window of a log"
    ),
    "unix_start_time": "seconds since 1970 at time 0, where a log has dates",
    "assumption assumption_change": (
        "with sim.assumptions: which other assumption changes the outcome most; the change of "
        "the mean response against the baseline under it, null where a queue does not settle "
        "then"
    ),
    # Turek et al. 1994; Goemans 1997
    "bound_* *_over_bound": "lower bounds that no policy can beat; the figure over them",
    "given_* calibration_area": (
        "what predictors were given; processor-seconds of runs before the start"
    ),
    "applications *_jobs_per_application sizes_per_application noise_spread median_noise": (
        "what repeats, and how exactly"
    ),
    "share_* beliefs_at_measured_counts area_share_beliefs_off": (
        "shares of jobs or starts: moldable, malleable, seen at three counts, decided by past "
        "runs, prediction more than a factor 1.25 off the runs at its count"
    ),
    "prediction_* predictions predictor_queries renewed_beliefs": (
        "|predicted - actual| / actual of a predictor's predictions, over last runs that "
        "completed; how often predictors were asked"
    ),
    "share_own_predictions fallback_median_error": (
        "share of the starts with a prediction of the predictor's own; error of the requests "
        "that it fell back on"
    ),
    # Standard Workload Format, field 3
    "recorded_* excess_processors": "the log's own schedule; what it held beyond the machine",
    "easy_plus_*": "of EASY++ on the same jobs, where a single run is compared with EASY",
    "repaired_values dropped_jobs": "by cleaning",
    "processors_by": "`recorded`: the most that the log holds at once, as it states no size",
    "reallocation* reallocations interrupted_runs node_failures shrunk_runs": (
        "changes of running jobs and what they cost; failures"
    ),
    # Daly 2006
    "lost_work* checkpoint_overhead* restart_overhead*": (
        "what failures and checkpoints cost: processor-seconds, and over held area"
    ),
    "requests* granted_* returned_* denied_* *_grant_delay": (
        "what running jobs asked for, got, and lost where they were denied"
    ),
    "menu seed events looks": (
        "the candidate counts, the seed, events of the engine, scheduling passes"
    ),
    # Law 2015
    "replications precision_* *_half_width batches* steady_batches*": (
        "how many simulations and batches, and how sure their means are"
    ),
}
"""Kinds of keys of ``summary.json``, each by patterns of names, and their meaning; ``*`` stands for
any part of a name. Comments say whose they are, where they are not ours."""


def column_names() -> list[str]:
    """Return "columns", the files, and the names of all columns, each once."""
    names = (name for columns in COLUMNS.values() for name in columns)
    return list(dict.fromkeys(["columns", *COLUMNS, "summary.json", *names]))


def meanings(name: str) -> Iterator[tuple[str, str]]:
    """Yield where a column or figure stands, and what it means; all for "columns" or a file.

    Examples
    --------
    >>> list(meanings("wait_time"))
    [('jobs.parquet: wait_time', 'start - submit')]
    >>> list(meanings("makespan"))[0][0]
    'summary.json: makespan'
    """
    for file, columns in COLUMNS.items():
        for column, meaning in columns.items():
            if name in (column, file, "columns"):
                yield f"{file}: {column}", meaning
    exact = any(name in patterns.split() for patterns in FIGURES)
    for patterns, meaning in FIGURES.items():
        every, parts = patterns.split(), meaning.split("; ")
        own = [one for one in every if name == one or (not exact and fnmatchcase(name, one))]
        if name in ("summary.json", "columns"):
            yield f"summary.json: {', '.join(every)}", meaning
        elif own:  # what it means by itself, where each of its kind has a part
            of_one = parts[every.index(own[-1])] if len(parts) == len(every) else meaning
            yield f"summary.json: {name}", of_one
