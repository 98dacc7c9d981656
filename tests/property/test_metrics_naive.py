"""Vectorised figures against loops that follow the definitions word by word."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import random_run

from predictors.base import Observation
from sim.results.metrics import summarise
from sim.results.outcome import outcome
from sim.results.steady_state import Trim

runs = st.tuples(st.integers(0, 10**6), st.integers(1, 14), st.integers(1, 9))


def waits_of(records):
    """Yield (job, begin, end) of every wait, by looking at one job after another."""
    for job in range(len(records.submit_time)):
        own = [i for i in range(len(records.allocations.job)) if records.allocations.job[i] == job]
        own.sort(key=lambda i: records.allocations.start_time[i])
        last_end, last_run = records.submit_time[job], -1
        for i in own:
            if records.allocations.run[i] != last_run:
                yield job, last_end, records.allocations.start_time[i]
            last_end, last_run = records.allocations.end_time[i], records.allocations.run[i]


def instants(records, extra=()):
    held = records.allocations
    waits = [t for _, a, b in waits_of(records) for t in (a, b)]
    return sorted({*held.start_time.tolist(), *held.end_time.tolist(), *waits, *extra})


def held_at(records, time):
    held = records.allocations
    inside = (held.start_time <= time) & (time < held.end_time)
    return int(held.processors[inside].sum())


def waiting_at(records, time):
    return [job for job, a, b in waits_of(records) if a <= time < b]


@settings(max_examples=60)
@given(runs)
def test_figures_of_the_machine(spec):
    trace, truth, records = random_run(*spec)
    got = summarise(outcome(trace, truth, records))
    need = np.minimum(truth.min_processors, trace.jobs["requested_processors"])
    request = trace.jobs["requested_processors"]
    lost = lost_requested = used = queued = 0.0
    most = 0
    times = instants(records)
    for a, b in itertools.pairwise(times):
        idle = records.processors - held_at(records, a)
        waiting = waiting_at(records, a)
        used += held_at(records, a) * (b - a)
        queued += len(waiting) * (b - a)
        most = max(most, len(waiting))
        lost += idle * (b - a) * any(need[job] <= idle for job in waiting)
        lost_requested += idle * (b - a) * any(request[job] <= idle for job in waiting)
    span = records.end_time.max() - records.submit_time.min()
    total = span * records.processors
    assert got["makespan"] == pytest.approx(span)
    assert got["utilization"] == pytest.approx(used / total)
    assert got["held_area"] == pytest.approx(used)
    assert got["loss_of_capacity"] == pytest.approx(lost / total)
    assert got["loss_of_capacity_requested"] == pytest.approx(lost_requested / total)
    assert got["max_queued_jobs"] == most
    assert got["mean_queued_jobs"] == pytest.approx(queued / span)


@settings(max_examples=40)
@given(runs)
def test_timeline_tells_machine_and_queue_at_any_instant(spec):
    trace, truth, records = random_run(*spec)
    timeline = outcome(trace, truth, records).tables.timeline
    request = trace.jobs["requested_processors"]
    times = instants(records)
    for a, b in itertools.pairwise(times):
        middle = (a + b) / 2
        row = timeline[timeline["time"] <= middle].iloc[-1]
        waiting = waiting_at(records, middle)
        assert row["busy_processors"] == held_at(records, middle)
        assert row["queued_jobs"] == len(waiting)
        assert row["queued_processors"] == sum(request[job] for job in waiting)
    changes = timeline.drop(columns="time").diff().iloc[1:]
    assert (changes != 0).any(axis=1).all()
    assert timeline["time"].is_monotonic_increasing
    assert timeline.iloc[-1, 1:].tolist() == [0, 0, 0]


@settings(max_examples=60)
@given(runs)
def test_figures_of_jobs(spec):
    trace, truth, records = random_run(*spec)
    got = summarise(outcome(trace, truth, records))
    n = len(trace.jobs)
    response, slowdown, efficiency, area, users = [], [], [], [], {}
    for job in range(n):
        row = trace.jobs.iloc[job]
        took = records.end_time[job] - records.submit_time[job]
        response.append(took)
        slowdown.append(max(1, took / max(row["reference_runtime"], 10)))
        users.setdefault(row["user"], []).append(slowdown[-1])
        held = [
            s.processors[i] * (s.end_time[i] - s.start_time[i])
            for s in [records.allocations]
            for i in range(len(s.job))
            if s.job[i] == job
        ]
        area.append(sum(held))
        if records.status[job] == "completed":
            efficiency.append(truth.serial_time[job] / area[-1])
    done = sum(truth.serial_time[j] for j in range(n) if records.status[j] == "completed")
    by_user = [sum(values) / len(values) for user, values in users.items() if user >= 0]
    assert got["mean_response_time"] == pytest.approx(sum(response) / n)
    assert got["max_response_time"] == max(response)
    assert got["mean_bounded_slowdown"] == pytest.approx(sum(slowdown) / n)
    assert got["mean_efficiency"] == (
        pytest.approx(sum(efficiency) / len(efficiency)) if efficiency else None
    )
    assert got["system_efficiency"] == pytest.approx(done / sum(area))
    assert got["jain_slowdown"] == pytest.approx(
        sum(slowdown) ** 2 / n / sum(s * s for s in slowdown)
    )
    expected = sum(by_user) ** 2 / len(by_user) / sum(s * s for s in by_user) if by_user else None
    assert got["jain_users"] == (pytest.approx(expected) if by_user else None)
    assert got["killed_jobs"] == records.status.count("killed")
    assert sum(got[f"{w}_{s}_jobs"] for w in ("narrow", "wide") for s in ("short", "long")) == n


@settings(max_examples=60)
@given(runs)
def test_figures_of_learning(spec):
    trace, truth, records = random_run(*spec)
    calibration = [Observation(0, -1, np.nan, n, 1.0, 0.0) for n in (1, 2)]
    got = summarise(outcome(trace, truth, records), calibration=calibration)
    allocations, asked, n = records.allocations, records.predictions, len(trace.jobs)

    def shown(job):
        spent = {}
        for k in range(len(allocations.job)):
            if allocations.job[k] == job and allocations.run[k] == records.restarts[job]:
                count = int(allocations.processors[k])
                seconds = allocations.end_time[k] - allocations.start_time[k]
                spent[count] = spent.get(count, 0.0) + seconds
        whole = records.end_time[job] - records.run_start[job]
        return {count for count, seconds in spent.items() if seconds >= 0.05 * whole}

    seen = 0
    for job in range(n):
        counts = {o.nprocs for o in calibration if o.application == truth.application[job]}
        for other in range(n):
            same = truth.application[other] == truth.application[job]
            ended = records.end_time[other] <= records.start_time[job]
            if same and ended and records.status[other] == "completed":
                counts |= shown(other)
        seen += len(counts) >= 3
    rows = range(len(asked.job))
    fitted = sum(
        asked.method[i] == "adept" and asked.observations[i] >= 2 and asked.chosen_by_curve[i]
        for i in rows
    )
    assert got["share_seen_at_three_counts"] == pytest.approx(seen / n)
    assert got["share_fitted_starts"] == pytest.approx(fitted / sum(records.restarts + 1))
    assert got["applications"] == len(set(truth.application.tolist()))
    errors = []
    for i in rows:
        job = asked.job[i]
        if asked.final[i] and records.status[job] == "completed":
            exact = truth.runtimes(job, np.array([asked.nprocs[i]]))[0]
            errors.append(abs(asked.predicted[i] - exact) / exact)
    assert got["predictions"] == len(errors)
    assert got["prediction_mape"] == (pytest.approx(sum(errors) / len(errors)) if errors else None)
    assert got["prediction_within_20"] == (
        pytest.approx(sum(error <= 0.2 for error in errors) / len(errors)) if errors else None
    )
    assert got["prediction_p90_error"] == (
        pytest.approx(np.percentile(errors, 90)) if errors else None
    )


@settings(max_examples=60)
@given(runs)
def test_every_figure_is_plain_and_finite(spec):
    trace, truth, records = random_run(*spec)
    trim = Trim(1, 0) if len(trace.jobs) > 2 else None
    got = summarise(outcome(trace, truth, records), trim=trim)
    assert list(got) == sorted(got)
    for key, value in got.items():
        assert value is None or type(value) in (int, float, bool, str), key
        assert not isinstance(value, float) or math.isfinite(value), key


@settings(max_examples=30)
@given(runs, st.integers(0, 3), st.integers(0, 3))
def test_steady_figures_leave_out_first_and_last_jobs(spec, first, last):
    seed, jobs, processors = spec
    trace, truth, records = random_run(seed, jobs + 8, processors)
    got = summarise(outcome(trace, truth, records), trim=Trim(first, last))
    if first == last == 0:
        assert not any(key.startswith("steady_") for key in got)
        return
    keep = slice(first, len(trace.jobs) - last)
    submit = records.submit_time[keep]
    response = records.end_time[keep] - submit
    assert got["steady_jobs"] == len(submit)
    assert got["steady_mean_response_time"] == pytest.approx(response.mean())
    begin, end = submit[0], submit[-1]
    times = instants(records, [begin, end])
    inside = [(a, b) for a, b in itertools.pairwise(times) if begin <= a and b <= end]
    used = sum(held_at(records, a) * (b - a) for a, b in inside)
    total = (end - begin) * records.processors
    assert got["steady_utilization"] == (pytest.approx(used / total) if total else None)
