"""What plugins answer is checked and converted where it enters; what is wrong is one line."""

import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sim
from predictors.base import Explanation
from predictors.compiling import kernel_folder
from predictors.in_loop.user_estimate import UserEstimate
from sim.engine.run import compiled_passes
from sim.policies.backfill.easy import EasyScheduler
from sim.policies.molding.base import Candidates
from sim.policies.reallocation.equi import Equipartition
from sim.policies.reallocation.rule import Reallocation
from sim.simulation.build import build
from sim.simulation.parts import given_object
from sim.state.decisions import Resize, Start, WakeAt
from tests.former import WORLD
from workloads import FrameWorkload, Trace
from workloads.shapes.analytic import Downey

ROOT = Path(__file__).resolve().parents[2]
TOYS = ("workload.jobs=12", "moldability.malleable=0.5")
FEW = {"processors": 16, "baseline": None}


class Predictor:
    """A predictor that answers one thing wrongly."""

    learns = True
    answers = {}  # noqa: RUF012

    def __init__(self, **answers):
        self.answers = answers

    def attach(self, jobs):
        self.jobs = jobs

    def _answer(self, method, usual, *args):
        given = self.answers.get(method, usual)
        return given(*args) if callable(given) else given

    def observe(self, observation):
        return self._answer("observe", False)

    def curve(self, job, counts):
        return self._answer("curve", self.right(job, counts), counts)

    def right(self, job, counts):
        return self.jobs.requested_time[job] * self.jobs.requested_processors[job] / counts

    def explain(self, job, nprocs):
        return self._answer("explain", Explanation("mine", 1, ""))

    def grade_of(self, job, nprocs):
        return self._answer("grade_of", ("", ""))

    def offered(self, job, counts):
        return self._answer("offered", None, counts)


class Unlearned(Predictor):
    learns = False


class WrongSignature(Unlearned):
    def curve(self, job):
        return None


class Choosing:
    def __init__(self, answer):
        self.answer = answer

    def choose(self, job, view, outlook):
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer(job, view) if callable(self.answer) else self.answer


class Ordering:
    recomputed = True

    def __init__(self, answer):
        self.answer = answer

    def keys(self, now, submit, processors, runtime):
        return self.answer(submit)


class Sharing(Reallocation):
    def share(self, beliefs, members, total):
        return self.answer(members)


class Timing(Reallocation):
    """A rule that answers wrongly when something is to happen."""

    def no_start_before(self, beliefs):
        return self.answers["no_start_before"]

    def wake(self, beliefs):
        return self.answers["wake"]


class Deciding:
    """A policy that is its own scheduler."""

    def __init__(self, answer):
        self.answer = answer

    def begin(self, view):
        return self

    def decide(self):
        return self.answer


class Beginning:
    def begin(self, view):
        return 7


class Working:
    def __init__(self, change):
        self.change = change

    def trace(self, streams, processors):
        frame = pd.DataFrame(
            {"submit_time": [0.0, 1.0], "runtime": [9.0, 9.0], "requested_processors": [2, 3]}
        )
        found = FrameWorkload(frame=frame).trace(streams, processors)
        return self.change(found)


def with_column(name, values):
    def change(trace):
        return Trace(trace.jobs.assign(**{name: values}), 16, "mine")

    return change


class Opening:
    def open(self, view):
        return Reading(view)


class Reading(Candidates):
    def __init__(self, view):
        self.view = view

    def of(self, job):
        return None


class Exiting(Unlearned):
    def curve(self, job, counts):
        raise SystemExit(0)


class Broken(Unlearned):
    def curve(self, job, counts):
        return self.nothing


def predicting(predictor):
    return {"policy": "sa", "predictor": predictor}


def curve(answer):
    return predicting(Unlearned(curve=answer))


def policy(order=None, allocation=None, reallocation=None):
    parts = order or sim.FirstComeFirstServed(), sim.Easy(), allocation or sim.Request()
    return {"policy": sim.Policy(*parts, reallocation), "predictor": "user_estimate"}


def choosing(answer):
    return policy(allocation=Choosing(answer))


def sharing(answer):
    rule = Sharing()
    object.__setattr__(rule, "answer", answer)
    return policy(reallocation=rule)


def timing(**answers):
    rule = Timing()
    object.__setattr__(rule, "answers", {"no_start_before": -np.inf, "wake": np.inf} | answers)
    return policy(reallocation=rule)


def none_mixed(counts):
    return [None, *[1.0] * (counts.size - 1)]


WRONG = {
    "all NaN": (curve(lambda n: np.full(n.size, np.nan)), "Unlearned.curve, job index 0: ans"),
    "negative": (curve(lambda n: -1.0 / n), "positive, finite seconds"),
    "zero": (curve(lambda n: 0.0 * n), "positive, finite seconds"),
    "infinite": (curve(lambda n: np.inf * n), "positive, finite seconds"),
    "too long": (curve(lambda n: np.ones(n.size + 1)), "in an array of shape ("),
    "a number": (curve(5.0), "Unlearned.curve, job index 0: answered 5.0; must be"),
    "two dimensions": (curve(lambda n: np.ones((n.size, 1))), "in an array of shape ("),
    "None among numbers": (curve(none_mixed), "positive, finite seconds"),
    "objects": (curve(lambda n: [Decimal(1)] * n.size), "positive, finite seconds"),
    "complex": (curve(lambda n: n + 0j), "positive, finite seconds"),
    "texts": (curve(lambda n: ["4"] * n.size), "positive, finite seconds"),
    "ragged": (curve(lambda n: [[1.0], [1.0, 2.0]]), "positive, finite seconds"),
    "a dict": (curve({1: 2.0}), "answered {1: 2.0}; must be positive, finite seconds"),
    "observe": (predicting(Predictor(observe="yes")), "Predictor.observe, job index"),
    "explain": (predicting(Predictor(explain="fit")), "Predictor.explain, job index"),
    "offered": (predicting(Predictor(offered=3)), "must be True or False for each count, or None"),
    "signature": (predicting(WrongSignature()), "WrongSignature.curve, job index 0: raised TypeE"),
    "SystemExit": (predicting(Exiting()), "Exiting.curve, job index 0: raised SystemExit: 0 ("),
    "exception": (predicting(Broken()), "raised AttributeError: 'Broken' object has no"),
    "no count": (choosing(0), "Choosing.choose, job index 0: answered 0; must be a whole number"),
    "fewer than none": (choosing(-5), "answered -5; must be a whole number, one of the job's"),
    "beyond the machine": (choosing(10**9), "answered 1000000000; must be a whole number"),
    "count as text": (choosing("4"), "answered '4'; must be a whole number"),
    "half a count": (choosing(2.5), "answered 2.5; must be a whole number"),
    "no answer": (choosing(None), "answered None; must be a whole number"),
    "a truth value": (choosing(True), "answered True; must be a whole number"),
    "choose raises": (choosing(KeyError(3)), "Choosing.choose, job index 0: raised KeyError: 3 ("),
    "choose exits": (choosing(SystemExit(0)), "raised SystemExit: 0 ("),
    "keys NaN": (policy(Ordering(lambda s: s * np.nan)), "answered array([nan]); must be"),
    "keys too many": (policy(Ordering(lambda s: np.ones(s.size + 1))), "Ordering.keys: answered"),
    "keys text": (policy(Ordering(lambda s: ["a"] * s.size)), "none of them NaN, or None"),
    "negative shares": (sharing(lambda m: m.least - 99), "Sharing.share: answered"),
    "shares beyond": (sharing(lambda m: m.least + 999), "from `least` to `largest`"),
    "shares too few": (sharing(lambda m: m.least - 1), "from `least` to `largest`, at most"),
    "no shares": (sharing(lambda m: None), "Sharing.share: answered None; must be"),
    "held": (timing(no_start_before=None), "no_start_before: answered None; must be seconds"),
    "wakes": (timing(wake="x"), "Timing.wake: answered 'x'; must be seconds, infinity for never"),
    "unknown job": ({"policy": Deciding([Start(99, 1)])}, "Deciding.decide: answered Start(job=99"),
    "job as text": ({"policy": Deciding([Start("0", 1)])}, "must be a list of sim.state.decisions"),
    "start on none": ({"policy": Deciding([Start(0, 0)])}, "on 1 to 16 processors"),
    "resize beyond": ({"policy": Deciding([Resize(0, 17)])}, "on 1 to 16 processors"),
    "wake before": ({"policy": Deciding([WakeAt(np.nan)])}, "a list of sim.state.decisions"),
    "no decisions": ({"policy": Deciding("start")}, "must be a list of sim.state.decisions"),
    "no scheduler": ({"policy": Beginning()}, "Beginning.begin: answered 7; must be a scheduler"),
    "no reading": (policy(allocation=Opening()), "Reading.of, job index 0: answered None; must"),
    "no trace": ({"jobs": Working(lambda trace: trace.jobs)}, "must be a workloads.Trace"),
    "NaN submits": ({"jobs": Working(with_column("submit_time", np.nan))}, "mine: job 1 has"),
    "NaN counts": ({"jobs": Working(with_column("requested_processors", np.nan))}, "Working.trac"),
    "no runtime": ({"jobs": Working(with_column("reference_runtime", -1.0))}, "must be finite and"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_used_is_one_line_that_names_the_class(name):
    asked, said = WRONG[name]
    toys = () if "jobs" in asked else TOYS
    with pytest.raises(sim.PluginError) as error:
        sim.run(*toys, **FEW, **asked)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


class Area:
    """An order whose keys are reckoned in place, or by a function of the class."""

    recomputed = False

    def __init__(self, in_place):
        self.in_place = in_place

    @staticmethod
    def area(processors, runtime):
        return processors * runtime

    @classmethod
    def of_class(cls, processors, runtime):
        return cls.area(processors, runtime)

    def keys(self, now, submit, processors, runtime):
        if not self.in_place:
            return type(self).of_class(processors, runtime)
        runtime *= processors
        return runtime


@pytest.mark.parametrize("rule", [None, Equipartition(), Equipartition(distance=1e-6)])
def test_an_order_may_reckon_in_place_and_by_its_class(rule):
    """Its keys are of copies: what is believed of jobs stays, compiled or not."""
    waits = []
    for in_place in (True, False):
        policy = sim.Policy(Area(in_place), sim.Easy(), sim.Request(), rule)
        asked = ("workload.jobs=60", "workload.load=1.3", "moldability.malleable=0.5")
        done = sim.run(*asked, **FEW, policy=policy, predictor="user_estimate")
        waits.append(done.jobs["start_time"].tolist())
    assert waits[0] == waits[1]


@pytest.mark.fast
def test_grades_are_two_texts():
    predictor = build(given_object(Predictor(grade_of=None), "predictor"), "predictor")
    with pytest.raises(sim.PluginError, match=r"Predictor.grade_of, job index 3: answered None"):
        predictor.grade_of(3, 4)


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        ([], r"Deciding: the policy left jobs waiting for ever: \d+"),
        ([Start(0, 9), Start(0, 9)], "Deciding: Start of job index 0"),
    ],
)
def test_decisions_that_the_machine_cannot_carry_out_name_the_policy(decisions, said):
    with pytest.raises(sim.PolicyError, match=said):
        sim.run(*TOYS, policy=Deciding(decisions), **FEW)


class Falling:
    """A curve of a family whose relative times are not positive."""

    fixed_end = False

    def relative_time(self, application, n):
        return 2.0 - np.asarray(n, float)

    def largest_useful(self, application, processors):
        return np.full(len(application), processors)

    def communication(self, application, n):
        return np.zeros(np.shape(n))


class Negative(Downey):
    """A truth in which some runtimes are negative."""

    def draw(self, rng, applications, processors):
        from dataclasses import replace

        return replace(super().draw(rng, applications, processors), curve=Falling())


def test_a_truth_whose_runtimes_are_not_positive_is_refused():
    with pytest.raises(sim.PluginError, match=r"Negative.draw: answered .* positive, finite sec"):
        sim.check_plugin(Negative())


@pytest.mark.parametrize("convert", [np.float32, np.float16, np.int64, list, pd.Series])
def test_numbers_of_other_types_count_like_float64(convert):
    def schedule(change):
        one = Unlearned(curve=lambda n: change(np.ceil(1000.0 / n)))
        found = sim.run(*TOYS, policy="sa_easy", predictor=one, **FEW)
        return found.jobs.drop(columns="believed_runtime")

    pd.testing.assert_frame_equal(schedule(convert), schedule(np.float64))


def test_counts_of_numpy_are_counts():
    answer = sim.run(*TOYS, **FEW, **choosing(lambda job, view: np.int64(view.counts(job)[0])))
    assert set(answer.jobs["status"]) == {"completed"}


class Composing:
    """A policy that is made of parts when it begins, an array beside them."""

    def __init__(self, answer):
        self.allocation = Choosing(answer)
        self.allocation.beside = np.arange(3)

    def begin(self, view):
        return sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), self.allocation).begin(view)


def test_parts_of_what_a_policy_begins_with_stand_at_the_door_too():
    right = Composing(lambda job, view: view.counts(job)[-1])
    assert set(sim.run(*TOYS, policy=right, **FEW).jobs["status"]) == {"completed"}
    with pytest.raises(sim.PluginError, match=r"Choosing.choose, job index 0: answered 10000"):
        sim.run(*TOYS, policy=Composing(10000), **FEW)


class Leaves(sim.SmallestTurnaround):
    """A class derived from one of the program's own."""


def test_derived_classes_stay_what_they_derive_from_and_decide_alike():
    own, derived = (
        sim.run(*TOYS, **FEW, **policy(allocation=one)).jobs
        for one in (sim.SmallestTurnaround(), Leaves())
    )
    pd.testing.assert_frame_equal(own, derived)


def test_a_class_derived_from_a_rule_with_a_compiled_pass_keeps_that(monkeypatch):
    def seen(engine):
        passes.append(compiled_passes(engine))
        return passes[-1]

    passes = []
    monkeypatch.setattr("sim.engine.run.compiled_passes", seen)
    rule = type("Mine", (Equipartition,), {"__module__": "mine", "gain_factor": 2.0})()
    own = sim.Policy(sim.FirstComeFirstServed(), sim.Easy(), sim.Request(), rule)
    found = sim.run(*TOYS, policy=own, predictor="oracle", **FEW).jobs
    equi = sim.run(*TOYS, policy="equi", predictor="oracle", **FEW).jobs
    pd.testing.assert_frame_equal(found, equi)
    assert len(passes) == 2
    assert None not in passes


def test_an_object_calls_its_own_methods_past_the_guard():
    class Careful(Unlearned):
        def curve(self, job, counts):
            if counts.size == 0:
                raise KeyError(job)
            return super().curve(job, counts)

        def explain(self, job, nprocs):
            try:
                self.curve(job, np.zeros(0, np.int64))
            except KeyError:
                return Explanation("careful", 0, "")

    found = sim.run(*TOYS, predictor=Careful(), policy="sa", **FEW)
    assert set(found.predictions["method"]) == {"careful"}


# Nothing known of some counts


class Knowing(Unlearned):
    """Knows the request, and the counts that are so many times it."""

    def __init__(self, *factors):
        self.factors = (1.0, *factors)

    def curve(self, job, counts):
        request = self.jobs.requested_processors[job]
        known = np.isin(counts, [factor * request for factor in self.factors])
        return np.where(known, 0.6 * self.right(job, counts), np.nan)


@pytest.mark.parametrize("name", ["sa", "sa_easy", "fair", "iterative", "utilization"])
def test_counts_of_which_nothing_is_known_are_no_candidates(name):
    plain = ("policy.allocation.without_curve=request",) if name == "sa_easy" else ()
    for known, factors in ((Knowing(), {1}), (Knowing(0.5), {0.5, 1})):
        jobs = sim.run(*WORLD, *plain, "workload.jobs=20", policy=name, predictor=known, **FEW).jobs
        chosen = jobs["allocated_processors"] / jobs["requested_processors"]
        assert set(chosen) <= factors
        assert set(jobs["status"]) == {"completed"}
    assert chosen.min() == 0.5 or name == "fair"


PRESETS = sorted(path.stem for path in (ROOT / "conf" / "policy").glob("*.yaml"))


@pytest.mark.parametrize("name", [one for one in PRESETS if one != "recorded"])
def test_every_preset_ends_with_a_predictor_that_knows_the_request_alone(name):
    more = ("cluster=shared", "cluster.history=1200") if name == "load_aware" else ()
    found = sim.run(*TOYS, *more, policy=name, predictor=Knowing(), **FEW)
    assert set(found.jobs["status"]) == {"completed"}
    assert np.isfinite(found.jobs["believed_runtime"]).all()


class Stating(Knowing):
    """Says what the user says, and of the request alone."""

    def right(self, job, counts):
        return super().right(job, counts) / 0.6


def test_malleable_jobs_share_as_without_a_curve():
    known, stated = (
        sim.run(*TOYS, policy="equi", predictor=one, **FEW).jobs
        for one in (Stating(), UserEstimate())
    )
    pd.testing.assert_series_equal(known["end_time"], stated["end_time"])


# Names


def named(**more):
    parts = sim.FirstComeFirstServed(), sim.Easy(), sim.Request()
    return sim.Policy(*parts, **more)


def test_objects_of_a_sweep_have_names_rows_and_folders_of_their_own(tmp_path):
    rules = [named(), named(), named(name="mine"), "easy", Deciding]
    rules[1] = sim.Policy(sim.ShortestFirst(), sim.NoBackfill(), sim.Request())
    with pytest.raises(sim.ConfigError, match="missing 1 required positional argument"):
        sim.sweep(*TOYS, policy=rules, predictor="user_estimate")
    table = sim.sweep(
        "workload.jobs=40", policy=rules[:4], predictor="user_estimate", processors=64,
        folder=tmp_path,
    )  # fmt: skip
    assert table["policy"].tolist() == ["Policy-1", "Policy-2", "mine", "easy"]
    assert table["run"].nunique() == 4
    responses = {}
    for name, run in zip(table["policy"], table["run"], strict=True):
        summary = pd.read_json(tmp_path / run / "summary.json", typ="series")
        responses[name] = summary["mean_response_time"]
    assert responses == dict(zip(table["policy"], table["mean_response_time"], strict=True))
    assert responses["Policy-1"] == responses["mine"] == responses["easy"]
    assert responses["Policy-1"] != responses["Policy-2"]


@pytest.mark.parametrize("name", ["a/b", "", "a\nb", "a,b", "policy=x"])
def test_names_that_fit_no_folder_are_refused(name):
    with pytest.raises(sim.ConfigError, match="must be letters, digits"):
        sim.run(*TOYS, policy=named(name=name))


# Before any run


class Reckless:
    """EASY that keeps no reservation, and says that it does."""

    def begin(self, view, order, allocation):
        scheduler = EasyScheduler(view, order, allocation)
        scheduler.backfilling["reservations"] = 0
        return scheduler


def test_a_backfilling_rule_that_delays_the_head_is_told_so_before_any_run():
    with pytest.raises(sim.PluginError, match="backfilling moves the start of job index"):
        sim.check_plugin(Reckless())


def test_an_author_is_told_before_any_run(tmp_path, monkeypatch, capsys):
    from sim.library.checking import main

    assert sim.check_plugin(Knowing()).startswith("Knowing: taken for predictor; toy jobs")
    with pytest.raises(sim.PluginError, match=r"answered 0; must be a whole number"):
        sim.check_plugin(Choosing(0))
    with pytest.raises(sim.ConfigError, match=r"taken for predictor: needs attach.*lacks learns"):
        sim.check_plugin(UserEstimateWithout())
    (tmp_path / "somebodys_rules.py").write_text(
        "class Wrong:\n    recomputed = False\n"
        "    def keys(self, now, submit, processors, runtime):\n        return 'abc'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["somebodys_rules.Wrong"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: Wrong.keys: answered 'abc'; must be a number for each job")
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    (tmp_path / "somebodys_curves.py").write_text(
        "import numpy as np\n\n\nclass Curved:\n    def choose(self, job, view, outlook):\n"
        "        found = view.curve(job, np.arange(1, 3))\n"
        "        return 1 if found is None else found.nothing\n"
    )
    assert main(["somebodys_curves.Curved"]) == 2  # an oracle has curves
    assert "has no attribute 'nothing'" in capsys.readouterr().err
    assert main(["sjf"]) == 0
    assert capsys.readouterr().out.startswith("sjf: taken for policy.order; toy jobs policy=easy")
    assert main(["no_such_option", "no.such.Class"]) == 2
    assert capsys.readouterr().err.count("error: no") == 2
    (tmp_path / "somebodys_sizes.py").write_text(
        "class Always:\n    def __init__(self, count): self.count = count\n"
        "    def choose(self, job, view, outlook): return self.count\n"
    )
    own = "somebodys_sizes.Always"
    assert main([own, "count=1", "sjf", own, "count=0", "fixed", "allocation.processors=2"]) == 2
    shown = capsys.readouterr()
    assert [line.partition(":")[0] for line in shown.out.splitlines()] == ["Always", "sjf", "fixed"]
    assert "answered 0; must be a whole number" in shown.err
    assert main([own]) == 2
    shown = capsys.readouterr().err
    assert "missing 1 required positional argument: 'count'" in shown
    assert shown.startswith("error: Always: raised TypeError")
    assert shown.endswith("give an object, or its arguments as KEY=VALUE\n")


def test_what_a_check_advises_works(tmp_path, monkeypatch, capsys):
    from sim.help.pages import CONFIG_DIRS
    from sim.library.checking import main

    folder = tmp_path / "it's, mine" / "conf" / "policy"
    folder.mkdir(parents=True)
    preset = "defaults: [easy, _self_]\nallocation:\n  _target_: somebodys_shares.Share\n"
    (folder / "squeezed.yaml").write_text(f"{preset}  count: 1\n")
    (tmp_path / "somebodys_shares.py").write_text(
        "class Share:\n    def __init__(self, count): self.count = count\n"
        "    def choose(self, job, view, outlook): return self.count\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert main(["squeezed"]) == 2
    assert "squeezed: there is no such option; --config-dir FOLDER" in capsys.readouterr().err
    where = ["--config-dir", str(folder.parent)]
    assert main([*where, "squeezed"]) == 0
    assert capsys.readouterr().out.startswith("squeezed: taken for policy; toy jobs: no problem")
    assert main(["sqeezed", *where]) == 2
    assert "sqeezed: there is no such option; did you mean squeezed?" in capsys.readouterr().err
    assert main(["sa", "--config-dir", "nowhere"]) == 2
    assert capsys.readouterr().err == "error: --config-dir nowhere: there is no such folder\n"
    assert main([*where, "squeezed", "allocation.count=0"]) == 2
    assert "Share.choose, job index 0: answered 0" in capsys.readouterr().err
    assert main(["somebodys_shares.Shared"]) == 2
    assert "there is no such class; somebodys_shares has none" in capsys.readouterr().err
    assert main(["sombodys_shares.Share"]) == 2
    assert "the folder that holds sombodys_shares must be in PYTHON" in capsys.readouterr().err
    CONFIG_DIRS.clear()


class UserEstimateWithout:
    """A predictor that does not say whether it learns."""

    attach = curve = observe = explain = Predictor.attach


def test_the_command_ends_with_one_line_and_keeps_the_traceback_in_its_log(tmp_path):
    (tmp_path / "leaving.py").write_text(
        "import sys\n\nclass Predictor:\n    learns = False\n\n"
        "    def attach(self, jobs): ...\n\n    def observe(self, seen): ...\n\n"
        "    def explain(self, job, nprocs): ...\n\n"
        "    def curve(self, job, counts):\n        sys.exit(0)\n"
    )
    conf = tmp_path / "conf" / "predictor"
    conf.mkdir(parents=True)
    (conf / "leaving.yaml").write_text("_target_: leaving.Predictor\n")
    ended = subprocess.run(
        [sys.executable, "-m", "sim", "--config-dir", "conf", "predictor=leaving", *TOYS,
         "hydra.run.dir=out"],
        cwd=tmp_path, env={"PYTHONPATH": f"{ROOT}:{tmp_path}", "HOME": str(tmp_path),
                           "NUMBA_CACHE_DIR": str(kernel_folder().parent)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("error: Predictor.curve, job index 0: raised SystemExit: 0 (")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "out" / "summary.json").exists()
    logged = "".join(path.read_text() for path in (tmp_path / "out").glob("*.log"))
    assert "sys.exit(0)" in logged
