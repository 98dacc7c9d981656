"""Running jobs predicted again: by what they must have done, under the load now."""

import numpy as np
import pytest
from hydra.utils import instantiate

from predictors.in_loop.oracle import NoisyOracle, OracleUnderLoad
from predictors.under_load.load_aware import Parts
from scripts.composing import composed
from sim.background.background import BackgroundLoad
from sim.background.load_beliefs import LoadBeliefs, LoadSensors
from sim.background.load_forecast import LoadForecast
from sim.background.models import RoundLoad
from sim.background.recorded import RecordedLoad
from sim.engine.engine import Engine
from sim.engine.invariants import Checker
from sim.engine.setup import Setup
from sim.errors import ConfigError
from sim.machine.shared import Shared
from sim.simulation.scene import play, set_scene
from tests.loads import end_of
from tests.toys import ToyTruth, rigid, rigid_truth, trace_of
from workloads.streams import Streams


@pytest.mark.parametrize(("belief", "close"), [("oracle", 1e-9), ("mean", 0.35)])
@pytest.mark.parametrize("fixed", [0.0, 300.0])
def test_what_is_left_is_what_the_machine_still_needs(belief, close, fixed):
    load = BackgroundLoad(16, Streams(3), RoundLoad(), RoundLoad((0.1, 0.8), (180, 480), (1, 8)))
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), belief))
    own, start = np.array([0, 3, 4, 9]), 90_000.0
    parts = Parts(*(np.array([seconds]) for seconds in (fixed, 7200.0, 600.0)))
    end = end_of(load, own, start + fixed, 7200.0, 600.0)
    for share in (0.0, 0.005, 0.3, 0.6):
        forecast.now = start + share * (end - start)
        left = forecast.remaining(parts, own, "effective", start)
        assert left == pytest.approx(end - forecast.now, rel=close)
    forecast.now = end + 0.3 * (end - start)
    assert forecast.remaining(parts, own, "effective", start) is None


def test_of_what_no_load_slows_down_nothing_but_itself_is_left():
    load = BackgroundLoad(4, Streams(3), RoundLoad(), None)
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), "forecast"))
    parts, own = Parts(np.array([50.0]), np.zeros(1), np.zeros(1)), np.array([2])
    forecast.now = 90_030.0
    assert forecast.remaining(parts, own, "effective", 90_000.0) == pytest.approx(20.0)
    forecast.now = 90_050.0
    assert forecast.remaining(parts, own, "effective", 90_000.0) is None


def test_by_the_paper_s_figure_too():
    load = BackgroundLoad(4, Streams(3), RoundLoad(), None)
    forecast = LoadForecast(LoadBeliefs(LoadSensors(load, Streams(1)), "mean"))
    forecast.now, own = 93_600.0, np.array([2])
    parts = Parts(np.zeros(1), np.array([7200.0]), np.zeros(1))
    found = [
        forecast.remaining(parts, own, form, 90_000.0) for form in ("effective", "min_avg_avail")
    ]
    assert found[0] == pytest.approx(found[1], rel=0.02)


@pytest.fixture
def slowed(tmp_path):
    """A machine whose only processor is slow between 1,000 s and 3,000 s."""

    def machine(renew):
        lines = ["start_time,end_time,node,available_cpu"]
        lines += [f"{a},{b},0,{c}" for a, b, c in ((0, 1e3, 1.0), (1e3, 3e3, 0.1), (3e3, 1e6, 1.0))]
        (tmp_path / "load.csv").write_text("\n".join(lines) + "\n")
        cpu = RecordedLoad(str(tmp_path / "load.csv"))
        return Shared(1, cpu=cpu, network=None, belief="last", history=0.0, renew=renew)

    return machine


def known(truth):
    """Return a predictor that knows the times on an idle machine."""
    oracle = NoisyOracle(spread=0.0)
    oracle.bind_truth(truth.runtimes, 0)
    return OracleUnderLoad(oracle, truth.communication_shares)


def chosen(policy):
    """Return a policy by the name of its preset."""
    return instantiate(composed(f"policy={policy}")["policy"])


def believed_ends(machine, instants):
    """Run one job of 1,500 s; return what is believed of its end whenever another arrives."""
    trace = trace_of([(0.0, 1, 1500.0), *((at, 1, 1.0) for at in instants)])
    truth = rigid_truth(trace)
    truth.share = 0.0
    seen = {}

    class Watching(Checker):
        def decided(self, engine, decisions):
            super().decided(engine, decisions)
            run = engine.view.running.get(0)
            if run is not None:
                seen[engine.view.now] = run.believed_end

    Engine(Setup(trace, truth, rigid("easy"), known(truth), machine, watchers=(Watching(),))).run()
    return seen


def test_a_job_is_predicted_again_at_its_period_and_when_its_belief_expires(slowed):
    # At 1,200 s nine samples of ten say 1 and one 0.1: 1,092 s are done, the rest takes 4,080 s.
    # At 1,600 s five of 14 say 0.1: 1,085.7 s are done, the rest takes 4,143 s.
    alone = believed_ends(slowed(None), [1200.0, 1600.0])
    assert alone[1200.0] == 1500.0
    assert alone[1500.0] == 3000.0  # doubled
    again = believed_ends(slowed(400.0), [1200.0, 1600.0])
    assert again[1200.0] == pytest.approx(5280.0)
    assert again[1600.0] == pytest.approx(5742.857, rel=1e-6)
    at_expiry = believed_ends(slowed(1e6), [1200.0])
    assert at_expiry[1200.0] == 1500.0
    assert at_expiry[1500.0] == pytest.approx(5653.846, rel=1e-6)


MOLDING = ("sa", "sa_easy", "load_aware", "iterative", "fair_share", "utilization", "queue_time")


@pytest.mark.parametrize("policy", MOLDING)
def test_molding_rules_count_on_renewed_ends(policy, tmp_path):
    # Of the first job, 1,300 of 1,500 s are left when processor 0 is fast again, at 1,100 s. At
    # 1,200 s, by the belief at its start, it ends at 1,500 s and the second on both processors at
    # 1,900 s; by the renewed one near 2,400 and 2,800 s, later than on one processor at 2,300 s.
    (tmp_path / "load.csv").write_text(
        "start_time,end_time,node,available_cpu\n0,100,0,1.0\n100,1100,0,0.1\n1100,1e6,0,1.0\n"
    )
    trace = trace_of([(0.0, 1, 1500.0), (1200.0, 2, 400.0)])
    times = [{1: 1500.0, 2: 1500.0}, {1: 1100.0, 2: 400.0}]
    started = []
    for renew in (None, 150.0):
        counts = np.array([1, 2])
        truth = ToyTruth(lambda job, n: times[job][n], counts, counts, share=0.0)
        truth.moldable = np.array([False, True])
        cpu = RecordedLoad(str(tmp_path / "load.csv"))
        machine = Shared(2, cpu=cpu, network=None, belief="last", history=0.0, renew=renew)
        records = Engine(Setup(trace, truth, chosen(policy), known(truth), machine)).run()
        assert records.end_time[0] == pytest.approx(2400.0)
        started.append((records.start_time[1], records.allocations.processors[-1]))
    assert started[0][0] >= 1500.0
    assert started[1] == (1200.0, 1)


@pytest.mark.parametrize("policy", ["easy_fastest", "conservative", "load_aware"])
def test_renewed_beliefs_keep_the_invariants(policy):
    config = composed(
        "cluster=shared", "cluster.renew=300", f"policy={policy}", "predictor=rational",
        "cluster.processors=16", "workload.jobs=60", "workload.load=0.3", "cluster.history=7200",
        "sim.check=true", "baseline=null", "predictor.charge=false",
    )  # fmt: skip
    jobs = play(config, config, set_scene(config, 0)).outcome.tables.jobs
    assert (jobs["status"] == "completed").all()


@pytest.mark.parametrize("renew", [0.0, -1.0, float("inf")])
def test_a_period_that_is_none_is_refused(renew):
    with pytest.raises(ConfigError, match="renew must be"):
        Shared(4, renew=renew)
