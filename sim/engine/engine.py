"""The discrete-event engine: replays a trace on a machine under a policy."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from math import inf
from typing import Any

import numpy as np

from predictors.base import Observation, setting
from predictors.compiling import direct
from sim.engine.clock import ARRIVAL, END, Clock, EventNotice
from sim.engine.event_manager import CompiledRun, EventManager
from sim.engine.loop import INSTANTS, EmptyMemory, always_ask
from sim.engine.protocols import Collaborator
from sim.engine.resizing import Resizer
from sim.engine.run_log import RunLog
from sim.engine.runs_under_load import BeliefsUnderLoad
from sim.engine.setup import Setup
from sim.engine.watcher import RunSoFar
from sim.engine.work import EfficiencySensor, TrueWork, followers, refuse_misfits, visible
from sim.errors import PolicyError
from sim.state.decisions import Preferences, Resize, Start, WakeAt
from sim.state.machine_state import MachineState, Run
from sim.state.records import Records
from sim.state.run_steps import cut_at_limit, make_calendar
from sim.state.view import ArrivedJobs, View
from sim.state.waiting_queue import WaitingQueue

_cut_at_limit = direct(cut_at_limit)


class Engine:
    """One run; see `Setup` for what it is made of.

    Attributes
    ----------
    compiled : CompiledRun or None
        None where passes are made in Python, or something happens that only Python knows.
    collaborators : list of Collaborator
        What is told of the run, each before the next.
    ends_first : bool
        Whether more may happen at an instant because runs end there.
    """

    compiled: CompiledRun | None = None

    def __init__(self, setup: Setup) -> None:
        trace, truth, machine = setup.trace, setup.truth, setup.machine
        self.trace = trace
        self.machine = machine
        self.predictor = setup.predictor
        self.watchers = setup.watchers
        self.work = TrueWork(trace, truth, machine)
        self.clock = Clock()
        self._followers = followers(trace)
        self.jobs = visible(trace, truth)
        refuse_misfits(trace, machine.processors)
        self.preferences = getattr(setup.policy, "preferences", Preferences)()
        self.state = self._make_state(setup)
        self.view = self._make_view(setup)
        self.beliefs = self.view._beliefs
        self.view.predictor._asked.explained = max([-1, *(one.explained for one in self.watchers)])
        for observation in setup.known:
            self.predictor.observe(observation)
            self.beliefs.note(observation.application, observation.nprocs)
        self.collaborators: list[Collaborator] = []
        if (load := machine.forecast()) is not None:
            self.collaborators.append(BeliefsUnderLoad(self, load))
        self.scheduler = setup.policy.begin(self.view)
        self.resizer = Resizer(self)
        self._learns = self.predictor.learns
        self._wants_split = setting(self.predictor, "wants_split", False)
        self.kills = setup.overrun == "kill"
        self.endings: dict[int, Callable[[Run], None]] = {}
        self._next: EventNotice | None = None
        self.ends_first = trace.feedback

    @cached_property
    def log(self) -> RunLog:
        """What has happened, where that is not compiled."""
        return RunLog(self.state)

    def _make_state(self, setup: Setup) -> MachineState:
        """Return the state before anything has happened; open the books."""
        self.submit = setup.trace.jobs["submit_time"].to_numpy(copy=True)
        self._dependent = {job for each in self._followers.values() for job, _ in each}
        self._awaited, submit = len(self._dependent), self.submit.astype(float)
        submit[list(self._dependent)] = -np.inf  # the books let them come with who is before them
        fails = getattr(setup.machine, "fails", False)
        state = MachineState(setup.machine.processors, len(submit), fails)
        self.make_calendar = partial(
            make_calendar,
            len(submit),
            state.tables.holder_end.size,
            submit_time=np.maximum.accumulate(submit),
            requested_time=self.jobs.requested_time.astype(float),
            corrections=np.array(setting(self.predictor, "corrections", ()), float),
        )
        self.event_manager = EventManager(state, state.tables, self.make_calendar())
        self.sensor = EfficiencySensor(self.work, state, setup.sensor_noise)
        state.processors_per_node = setup.machine.processors_per_node
        self._scalars = state.tables.scalars
        return state

    def _make_view(self, setup: Setup) -> View:
        """Return what the policy may see."""
        truth, draws, processors = setup.truth, setup.adopter_draws, setup.machine.processors
        more = {
            "submit_time": self.submit,
            "least": truth.min_processors,
            "largest": np.minimum(truth.max_processors, processors),
            "malleable": np.asarray(truth.malleable, bool),
            "adopter_draws": np.zeros(len(self.submit)) if draws is None else draws,
        }
        self.malleable = more["malleable"]
        feasible = truth.feasible if getattr(truth, "restricts_counts", True) else None
        self.shown = ArrivedJobs(self.jobs, more, feasible, processors)
        self.predictor.attach(self.shown.jobs)
        return View(self.state, self.shown, self.predictor, self.preferences)

    def run(self) -> Records:
        """Run until nothing is left to happen."""
        if self.compiled is None:
            nobody = EmptyMemory(WaitingQueue(0).tables)
            self.event_manager.bind(self.process_and_decide, nobody, must_ask=always_ask)
        self._scalars = self.event_manager.tables.scalars
        self.expect_next(self.event_manager.next_event_time)
        self.clock.run_instants(self._instant)
        book = self.compiled or self.log
        if waiting := len(self.trace.jobs) - book.ended:
            raise PolicyError(f"the policy left jobs waiting for ever: {waiting:,}")
        records = book.records(self.predictor, self.submit)
        for watcher in self.watchers:
            watcher.finished(self._watched()._replace(records=records))
        counters = {
            **records.counters,
            "events": float(self._scalars["events"].item()),
            "looks": float(self._scalars["passes"].item()),
            "predictor_queries": float(self.view.predictor._asked.queries),
            **self.resizer.counters(),
        }
        records = replace(records, counters=counters)
        for each in self.collaborators:
            records = each.complete(records)
        return records

    # What happens

    def happened(self) -> None:
        """Count an event that is not in the books of who arrives and runs."""
        self._scalars["events"] += 1
        self.ask_for_pass()

    def ask_for_pass(self) -> None:
        """Let the policy decide at this instant."""
        self._scalars["pass_due"] = 1

    def expect_next(self, following: float) -> None:
        """See to it that the clock stops when something happens next.

        Parameters
        ----------
        following : float
            When that is, seconds; infinity if nothing happens.
        """
        expected = self._next
        is_due = expected is not None and expected.callbacks and expected.time <= following
        if following < inf and not is_due:
            self._next = EventNotice(self.clock, following, END, self._begin_instant)

    def _begin_instant(self, occurrence: Any) -> None:
        """Take in ends first where others hang on them at this instant."""
        if self.ends_first:
            self._take_in_ends(self.event_manager.end_runs(self.clock._now))

    def _take_in_ends(self, ended: list[Run]) -> None:
        for run in ended:
            self.endings.pop(run.job)(run)

    def _arrive_dependent(self, occurrence: Any) -> None:
        """Take in a job whose think time is over."""
        self.happened()
        self._awaited -= 1
        self._arrive([occurrence.subject])

    def _arrive(self, jobs: list[int]) -> None:
        """Let jobs be seen from now on."""
        self.shown.arrive(jobs)
        self.state.arrived += jobs

    def end(self, run: Run, status: str = "completed") -> None:
        """Take in that a job whose run is off the machine has ended, or was given up."""
        job, now = run.job, self.clock._now
        for each in self.collaborators:
            each.ended(run, status)
        self.log.end(run, now, status)
        teaches = self.tells_runtime(run.start, now, status == "completed")
        errors, on_one_count = self.preferences.past_errors, run.changed == run.start
        if teaches and errors is not None and on_one_count and run.number == 0:
            believed = self.log.believed_at_start(run)
            errors.note(self.jobs.application.item(job), believed, now - run.start)
        if run.resumes > now:
            self.resizer.refund_pause(run, now)
        if teaches and self._learns:
            measured = self.machine.measured(run.nodes, run.start, now)
            for processors, runtime, more in self.resizer.observed(run, now):
                self.learn(job, processors, runtime, now, {**more, **measured})
        for follower, think in self._followers.get(job, ()):
            self.submit[follower] = now + think  # what is shown once it arrives
            EventNotice(self.clock, now + think, ARRIVAL, self._arrive_dependent, follower)
        self.beliefs.forget(job)
        self.shown.leave(job)
        self.state.efficiency.pop(job, None)
        self.work.drop(job)

    @staticmethod
    def tells_runtime(start: float, end: float, is_completed: bool) -> bool:
        """Say whether a run shows how long its job takes; one of zero seconds says nothing."""
        return end > start and is_completed

    def learn(
        self, job: int, processors: int, runtime: float, now: float, more: Mapping[str, Any]
    ) -> None:
        """Tell the predictor what a job's run took on a count, and what else is known of it."""
        visible, application = self.jobs, self.jobs.application.item(job)
        if self._wants_split and "share" not in more:
            more = {**self.work.split(job, processors), **more}
        size_class, size = visible.size_class.item(job), visible.size.item(job)
        observed = Observation(application, size_class, size, processors, runtime, now, job, more)
        self.beliefs.note(application, processors)
        if self.predictor.observe(observed):
            self.state.revised.add(application)

    def move_believed_end(self, run: Run, end: float) -> None:
        """Believe that a running job ends at another time, sooner or later than before.

        Parameters
        ----------
        run : Run
        end : float
            Seconds, not before now.
        """
        self.event_manager.set_believed_end(run, end)
        self.expect_next(self.event_manager.next_event_time)

    # What is decided

    def _instant(self, now: float, until: float) -> None:
        """Take in what is in the books, each instant with its pass, up to a chance for Python."""
        following = self.event_manager.advance(now, until)
        if self.watchers:
            if self.compiled is not None:
                self.compiled.tell_passed()
            self._tell_progress()
        self.expect_next(following)

    def process_and_decide(self, now: float) -> None:
        """Take in what is in the books of an instant, and make its pass."""
        ended, expired, came = self.event_manager.take_in()
        self._arrive([job for job in came if job not in self._dependent])
        if self._followers:
            self.state.arrived.sort()  # ties stand in the order of the trace
        self._take_in_ends(ended)
        for run in expired:  # whose belief the books have let grow
            if not any(each.renews_belief(run, now) for each in self.collaborators):
                self.state.show_moved_end(run)
        self._pass(now)

    def tell_passed(self) -> None:
        """Tell whoever needs that that a pass was carried out."""
        for watcher in self.watchers:
            if watcher.needs_passes:
                watcher.passed(self._watched())

    def _tell_progress(self) -> None:
        """Tell whoever watches how far the run is, now and then."""
        for watcher in self.watchers:
            if self._scalars["passes"].item() % INSTANTS == 0 and watcher.is_due():
                book, now = self.compiled or self.log, self._scalars["now"].item()
                arrived, running = self._scalars[["arrived", "running"]].item()
                queued = arrived - self._awaited - running - book.ended
                watcher.progressed(now, max(queued, 0), book.over.copy())

    def _pass(self, now: float) -> None:
        for each in self.collaborators:
            each.before_pass(now)
        self._scalars["pass_due"], self._scalars["passes"] = 0, self._scalars["passes"] + 1
        self.advance_to(now)
        decisions = self.scheduler.decide()
        if self.watchers:
            watched = self._watched()
            for watcher in self.watchers:
                watcher.decided(watched, decisions)
        for decision in decisions:
            if type(decision) is Start:
                self._start(decision, now)
            elif type(decision) is Resize:
                self.resizer.resize(decision, now)
            elif type(decision) is WakeAt:
                self.state.wake_at(*decision)
            elif not any(each.carry_out(decision, now) for each in self.collaborators):
                raise PolicyError(
                    f"the policy decided {decision!r}, which this run cannot carry out"
                )
        self.tell_passed()
        self.state.clear_changes()
        for each in self.collaborators:
            each.after_pass()

    def advance_to(self, now: float) -> None:
        """Let an instant be seen, with what is measured anew then."""
        if self.state.read_efficiencies and self.state.now != now:
            self.sensor.renew()
        self.state.now = now

    def set_true_runtime(self, job: int, processors: int) -> None:
        """Put down what a job will take on the count that it has chosen."""
        calendar = self.event_manager.calendar
        runtime = calendar.runtime[job] = self.work.runtime(job, processors)
        if self.kills:
            calendar.limit[job] = self.resizer.whole_limit(job, processors)
        self.sensor.measure(job, processors, runtime)

    def _watched(self) -> RunSoFar:
        """Return what whoever watches may see."""
        return RunSoFar(self.view, self.scheduler, self.log)

    def _start(self, start: Start, now: float) -> None:
        job, processors, nodes, cost = start
        state, view = self.state, self.view
        if processors > state.free:
            raise PolicyError(
                f"Start of job index {job} on {processors} processors; {state.free} are free"
            )
        if job in state.running or self.log.over[job]:
            raise PolicyError(f"Start of job index {job}, which is not waiting")
        nodes = state.allocate(job, processors, nodes)
        belief = view.belief(job, processors)
        run = Run(job, self.log.restarts[job], nodes, processors, now, now + cost + belief)
        unstretched = self.preferences.past_errors is None
        predicted = belief if unstretched else view.predictor.runtime(job, processors)
        for each in self.collaborators:
            predicted = each.started(run, belief, predicted)
        explanation = view.predictor.explain(job, processors) if self._learns else None
        self.log.start(run, predicted, explanation, job not in self.preferences.kept_requests)
        self.sensor.begin(run)
        if cost:
            self.resizer.delay_start(run, now, cost)
        self.plan_completion(run, now + cost)

    def plan_completion(self, run: Run, now: float) -> float:
        """Expect the end of a run that begins, or goes on, at `now`; return when that is."""
        for each in self.collaborators:
            planned = each.plan_completion(run, now)
            if planned is not None:
                return planned
        end = self.work.completion(run, now)
        ending: Callable[[Run], None] = self.end
        if self.kills:
            end, is_killed = _cut_at_limit(end, self.resizer.kill_time(run), now)
            if is_killed:
                ending = partial(self.end, status="killed")
        self.expect_end(run, end, ending)
        return end

    def expect_end(self, run: Run, end: float, ending: Callable[[Run], None]) -> None:
        """Let a run end then, in this way, whatever was expected before."""
        self.endings[run.job] = ending
        if run.job in self.state.running:
            self.event_manager.set_true_end(run.job, end)
        else:
            self.event_manager.begin(run, end)
