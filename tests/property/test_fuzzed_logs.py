"""Odd values in every place of a log: jobs, or one line that says why not; never a traceback."""

import json
import random

import pytest
from swf_samples import job_line, write_log

from workloads.errors import WorkloadError
from workloads.logs.batsim import BatsimWorkload
from workloads.logs.log import SwfWorkload
from workloads.logs.sacct import SacctWorkload
from workloads.logs.swf import FIELDS
from workloads.streams import Streams

pytestmark = [pytest.mark.fast, pytest.mark.filterwarnings("ignore")]

FILES = 200
WORDS = ("-1", "0", "60", "1e3", "1e30", "-1e30", "9" * 20, "9" * 400, str(2**62), str(2**63 - 1),
         "nan", "inf", "0.5", "-0", "1.", "x", "1e-300", "٣", "+7")  # fmt: skip
TIMES = ("0001-01-01T00:00:00", "9999-12-31T23:59:59", "2024-01-01T00:00:00+14:00", "Unknown", "",
         "99999-00:00:00", "1-02:03:04")  # fmt: skip
VALUES = (None, True, -1, 0, 2.5, 1e300, 10**30, 10**400, "x", [], {}, [1], float("nan"))
KINDS = ("delay", "composed", "parallel", "parallel_homogeneous_total", "usage", None)


def swf(rng, folder):
    lines = [f"; MaxProcs: {rng.choice(WORDS)}"] if rng.random() < 0.4 else []
    for number in range(rng.randint(1, 6)):
        odd = {rng.choice(FIELDS): rng.choice(WORDS) for _ in range(rng.randint(0, 2))}
        plain = {"job_number": number, "submit_time": 10 * number, "run_time": 60}
        lines.append(job_line(**(plain | odd)))
    return SwfWorkload(write_log(folder, *lines), load=rng.choice([None, 0.5]))


def sacct(rng, folder):
    header = ["JobIDRaw", "User", "Submit", "Start", rng.choice(["ElapsedRaw", "Elapsed", "End"])]
    header += [rng.choice(["TimelimitRaw", "Timelimit"]), "AllocCPUS", "State", "JobName"]
    lines = [header]
    for number in range(1, rng.randint(2, 6)):
        day = f"2024-01-0{number}T00:"
        row = [str(number), "u", f"{day}00:00", f"{day}10:00", "60", "5", "4", "COMPLETED", "a"]
        for _ in range(rng.randint(0, 2)):
            row[rng.randrange(len(row))] = rng.choice(WORDS + TIMES)
        lines.append(row)
    path = folder / "jobs.txt"
    path.write_text("\n".join(map("|".join, lines)))
    return SacctWorkload(path, timezone=rng.choice(["UTC", "Pacific/Kiritimati"]))


def batsim(rng, folder):
    inner = {"type": "delay", "delay": 3}
    outer = {"type": rng.choice(KINDS), "delay": rng.choice([5, *VALUES]), "com": 0,
             "cpu": rng.choice([[1, 2], *VALUES]), "repeat": rng.choice([2, *VALUES]),
             "seq": rng.choice([["q", "q"], ["p"], "x", None])}  # fmt: skip
    jobs = []
    for number in range(rng.randint(0, 3)):
        job = {"id": str(number), "subtime": 10 * number, "walltime": 90, "res": 2}
        job["profile"] = rng.choice(["p", "q", "q"])
        if rng.random() < 0.3:
            job[rng.choice(list(job))] = rng.choice(VALUES)
        jobs.append(rng.choice([*[job] * 9, rng.choice(VALUES)]))
    content = {"nb_res": rng.choice([8, 8, 8, *VALUES]), "jobs": jobs, "profiles": {"p": outer}}
    content["profiles"]["q"] = inner
    path = folder / "workload.json"
    path.write_text(json.dumps(content)[: rng.choice([*[None] * 9, -5])])
    return BatsimWorkload(path, speed=rng.choice([None, 1e9]))


@pytest.mark.parametrize("made", [swf, sacct, batsim])
def test_odd_values_are_jobs_or_one_line(tmp_path, made):
    rng = random.Random(7)
    said, read = [], 0
    for _ in range(FILES):
        try:
            trace = made(rng, tmp_path).trace(Streams(1))
        except WorkloadError as error:
            said.append(str(error))
        else:
            assert (trace.jobs["requested_processors"] >= 1).all()
            read += 1
    assert all("\n" not in message and len(message) < 2000 for message in said)
    assert min(read, len(said)) > 10
