import numpy as np
import pandas as pd
import pytest

from workloads.errors import WorkloadError
from workloads.logs.cleaning import screen
from workloads.logs.formats import FORMATS, guess_format
from workloads.logs.identity import (
    IDENTITIES,
    KEYS,
    counts_before,
    identify,
    known_share,
    labels_by,
    measured_share,
    offered,
    request_classes,
)

pytestmark = pytest.mark.fast


def jobs_of(number=24, **columns):
    said = {"user": -1, "executable": -1, "name": -1, "requested_processors": 4}
    said |= {"requested_time": np.nan}
    return pd.DataFrame(said | columns, index=range(number))


ROW = np.arange(24)
FRESH = ROW  # never twice


@pytest.mark.parametrize(
    ("columns", "identity"),
    [
        ({"user": ROW % 2, "executable": ROW % 4}, "user_executable"),
        ({"user": ROW % 2, "executable": FRESH, "name": ROW // 12}, "user_name"),
        ({"user": FRESH, "executable": ROW % 4}, "executable"),
        ({"user": ROW % 2, "executable": FRESH}, "user"),
        ({"user": ROW % 2, "executable": FRESH, "name": ROW % 2}, "user"),  # names tell no more
        ({"executable": FRESH, "requested_time": 60.0 * (ROW % 2)}, "user_request"),
        ({"user": FRESH, "executable": FRESH, "requested_time": 60.0}, "none"),
        ({}, "none"),  # a count alone is no application
    ],
)
def test_auto_takes_the_first_identity_that_repeats_enough(columns, identity):
    assert identify(jobs_of(**columns), "auto", "log")[0] == identity


def test_half_of_the_jobs_must_have_been_seen_three_times():
    six = np.repeat([0, 1, 2, 3], 6)  # of six jobs the first three are not seen three times
    assert known_share(six) == 0.5
    assert identify(jobs_of(user=six), "auto", "log")[0] == "user"
    fewer = np.where(ROW == 23, 9, six)
    assert identify(jobs_of(user=fewer), "auto", "log")[0] == "none"


def test_the_count_comes_last():
    assert [name for name in KEYS if "requested_processors" in KEYS[name]] == ["user_request"]
    assert list(KEYS)[-1] == "user_request"
    assert set(IDENTITIES) == {"auto", *KEYS, "none"}


def test_jobs_of_which_nothing_is_said_stand_alone():
    jobs = jobs_of(6, user=[1, 1, -1, -1, 1, 1], executable=[5, -1, 5, 5, 5, -1])
    assert labels_by(jobs, "user_executable").tolist() == [0, 1, 2, 3, 0, 4]
    assert labels_by(jobs, "executable").tolist() == [0, 1, 0, 0, 0, 2]
    requests = jobs_of(4, user=[-1, 1, -1, -1], requested_time=[60, np.nan, 60, np.nan])
    assert labels_by(requests, "user_request").tolist() == [0, 1, 0, 2]
    assert labels_by(jobs, "none").tolist() == [0, 1, 2, 3, 4, 5]


def test_what_a_log_does_not_say_is_refused():
    jobs = jobs_of(user=ROW % 2)
    assert offered(jobs) == ["user", "user_request", "none"]
    with pytest.raises(WorkloadError) as refusal:
        identify(jobs, "executable", "toy.swf")
    assert str(refusal.value) == (
        "workload.identity=executable: toy.swf records it for no job; accepted are auto, "
        "user, user_request, none"
    )


def test_counts_seen_before_are_those_of_earlier_jobs():
    labels = np.array([0, 1, 0, 0, 1, 0, 0])
    counts = np.array([1, 1, 2, 2, 4, 8, 8])
    assert counts_before(labels, counts).tolist() == [0, 0, 1, 2, 1, 2, 3]
    assert measured_share(labels, counts) == pytest.approx(1 / 7)


def test_requested_times_are_rounded_to_popular_ones():
    asked = np.array([600.0] * 60 + [7200.0] * 60 + [2000.0, 2200.0, 1e6, 1.0, np.nan])
    classes = request_classes(asked)
    assert classes[:120].tolist() == [0] * 60 + [1] * 60
    assert classes[120:].tolist() == [0, 1, 1, 0, -1]  # 2078 is as far from both, in log
    assert (request_classes(np.arange(1.0, 30.0)) == -1).all()


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("SDSC-SP2-1998-4.2-cln.swf.gz", "user"),  # 48,616 executables in 54,034 jobs
        ("NASA-iPSC-1993-3.1-cln.swf.gz", "user_executable"),
        ("LLNL-Atlas-2006-2.1-cln.swf.gz", "user_executable"),
        ("ALCF-Theta-2022.swf.gz", "user_request"),
        ("lublin_256.swf.gz", "none"),
        ("slurm-micro-sacct-2021.txt.gz", "user"),
    ],
)
def test_what_repeats_in_real_logs(traces, name, identity):
    log = FORMATS[guess_format(traces / name)](traces / name).read()
    assert identify(screen(log).recorded(), "auto", name)[0] == identity
