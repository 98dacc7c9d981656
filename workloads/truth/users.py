"""Whose jobs those of a model are: users belong to groups, and applications to a group.

References
----------
Zilber, Amit & Talby, "What is worth learning from parallel workloads? A user and
session based analysis" (ICS 2005): a few users submit most jobs, and those of one user are
alike. Tsafrir, Etsion & Feitelson (TPDS 2007) predict by a user's last two runtimes for that
reason. The numbers are those of logs of the Parallel Workloads Archive (Feitelson, Tsafrir &
Krakov, JPDC 2014), counted anew: on SDSC-SP2, LLNL-Atlas and NASA-iPSC a tenth of the users
submit 59, 53 and 45 % of the jobs, and predictions by the last two runtimes have a median
error of 27, 50 and 56 %. That users submit in sessions is left out.
"""

from dataclasses import replace

import numpy as np

from workloads.base import IntArray, Trace
from workloads.shapes.analytic import Downey
from workloads.streams import Streams
from workloads.truth.assignment import class_quotas, zipf_shares
from workloads.truth.build import build_truth

GROUPS = 10
"""How many groups share the applications; with fewer applications each has its own."""

MEMBERS, ACTIVITY = 10, 1.3
"""Users of a group, whose shares of its jobs follow Zipf's law with that exponent."""

STRAY = 1.0
"""Standard deviation of ln runtime by which jobs stray from what their user usually runs."""


def with_users(trace: Trace, application: IntArray, streams: Streams) -> Trace:
    """Return a model's jobs with a user and a group each; a trace of other jobs as it is.

    Nothing else of the jobs changes: those of a group are shared out among its users, who
    each take the ones whose runtimes, but for a random factor, lie next to each other.

    Parameters
    ----------
    trace : Trace
    application : numpy.ndarray of int, shape (jobs,)
        From 0; that of `Truth`.
    streams : Streams
        Users come from the stream ``users``.

    Examples
    --------
    >>> from workloads.models.lublin import Lublin
    >>> trace = with_users(Lublin(jobs=50).trace(Streams(1)), np.arange(50) % 5, Streams(1))
    >>> trace.jobs["user"].nunique(), len(np.unique(trace.models["group"]))
    (30, 5)
    """
    if not trace.lacks_users:
        return trace
    rng = streams("users")
    applications = int(application.max()) + 1
    groups = min(GROUPS, applications)
    group = rng.permutation(np.arange(applications) % groups)[application]
    runtime = np.maximum(trace.jobs["reference_runtime"].to_numpy(float), 1.0)
    usual = np.log(runtime) + STRAY * rng.standard_normal(len(runtime))
    user = np.empty(len(group), np.int64)
    for number in range(groups):
        own = np.flatnonzero(group == number)
        taken = rng.permutation(class_quotas(len(own), zipf_shares(MEMBERS, ACTIVITY), 1))
        members = np.repeat(number * MEMBERS + 1 + np.arange(MEMBERS), taken)
        user[own[np.argsort(usual[own])]] = members
    jobs = trace.jobs.assign(user=user, executable=application + 1)
    models = {**trace.models, "group": group + 1}
    return replace(trace, jobs=jobs, models=models, lacks_users=False)


def with_applications(trace: Trace, streams: Streams) -> Trace:
    """Return a model's jobs with the applications and users that a run with its defaults has."""
    machine = trace.processors
    assert machine is not None
    return with_users(trace, build_truth(trace, Downey(), streams, machine).application, streams)
