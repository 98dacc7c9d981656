"""What takes part in a run beside the policy: load, failing nodes, jobs that evolve."""

from sim.state.decisions import Decision
from sim.state.machine_state import Run
from sim.state.records import Records


class Collaborator:
    """Is told of starts, ends and passes, and says what it has to say; as it is, nothing."""

    def started(self, run: Run, planned: float, predicted: float) -> float:
        """Be told of a run that starts; return what is predicted of it.

        Parameters
        ----------
        run : Run
        planned, predicted : float
            Seconds: the belief that the policy plans with, and the one that is noted.
        """
        return predicted

    def plan_completion(self, run: Run, now: float) -> float | None:
        """Plan the end of a run that begins or goes on; None leaves it to the engine."""
        return None

    def expired(self, run: Run, now: float) -> bool:
        """Be told that a run has outlived its belief; say whether there is a new one."""
        return False

    def ended(self, run: Run, status: str) -> None:
        """Be told that a job is over."""

    def before_pass(self, now: float) -> None:
        """Be told that the policy is about to decide."""

    def carried_out(self, decision: Decision, now: float) -> bool:
        """Carry out a decision that the engine does not know; say whether it was done."""
        return False

    def after_pass(self) -> None:
        """Be told that what the policy decided is done."""

    def complete(self, records: Records) -> Records:
        """Add to the records of a run that is over."""
        return records
