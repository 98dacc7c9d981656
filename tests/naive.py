"""Schedulers written the obvious way, straight from the contract, to check the engine against.

They share nothing with the engine: no event queue, no profile, no compiled code.
"""

from collections.abc import Callable, Sequence
from math import inf, log2

Row = tuple[float, int, float, float]
Key = Callable[[float, Row], float]
"""Of a waiting job, the smallest first, from the time and its row."""


def shortest(now: float, row: Row) -> float:
    return row[3]


def unicep(now: float, row: Row) -> float:
    return -(now - row[0]) / (log2(max(row[1], 2)) * row[3])


class NaiveScheduler:
    """Replays rigid (submit, processors, runtime, estimate) rows, conservatively in an order."""

    def __init__(
        self, rows: Sequence[Row], processors: int, rule: str, key: Key | None = None
    ) -> None:
        self.rows = rows
        self.key = key
        self.processors = processors
        self.rule = rule
        self.waiting: list[int] = []
        self.running: dict[int, tuple[float, float, float]] = {}  # start, end, believed end
        self.reserved: dict[int, float] = {}
        self.start: dict[int, float] = {}
        self.now = -inf

    def run(self) -> list[float]:
        to_come = sorted(range(len(self.rows)), key=lambda j: self.rows[j][0])
        while to_come or self.running or self.waiting:
            self.now = self._next_instant(to_come)
            freed = self._take_ends()
            grown = self._take_expiries()
            arrived = []
            while to_come and self.rows[to_come[0]][0] == self.now:
                arrived.append(to_come.pop(0))
            self._decide(freed, grown, arrived)
        return [self.start[j] for j in range(len(self.rows))]

    def _next_instant(self, to_come: list[int]) -> float:
        times = [self.rows[j][0] for j in to_come[:1]]
        times += [end for _, end, _ in self.running.values()]
        times += [believed for _, _, believed in self.running.values()]
        times += [start for start in self.reserved.values() if start > self.now]
        return min(times)

    def _take_ends(self) -> bool:
        early = False
        for job, (_, end, believed) in list(self.running.items()):
            if end == self.now:
                early |= believed > self.now
                del self.running[job]
        return early

    def _take_expiries(self) -> bool:
        grown = False
        for job, (start, end, believed) in list(self.running.items()):
            if believed == self.now:
                total = max(2 * (believed - start), self.now - start + 1)
                self.running[job] = (start, end, start + total)
                grown = True
        return grown

    def _decide(self, freed: bool, grown: bool, arrived: list[int]) -> None:
        if self.rule in ("none", "skip", "easy"):
            self.waiting += arrived
            getattr(self, f"_{self.rule}")()
        elif self.rule == "replan":
            self.waiting = self._ranked(self.waiting + arrived)
            self.reserved = {}
            for job in self.waiting:
                self.reserved[job] = self._earliest(job)
            self._start_due()
        else:
            self._conservative(freed, grown, arrived)

    # queries

    def _free_now(self) -> int:
        return self.processors - sum(self.rows[j][1] for j in self.running)

    def _free_at(self, instant: float, skip: int = -1) -> int:
        held = sum(self.rows[j][1] for j, r in self.running.items() if r[2] > instant)
        for job, start in self.reserved.items():
            if job != skip and start <= instant < start + self.rows[job][3]:
                held += self.rows[job][1]
        return self.processors - held

    def _instants(self) -> list[float]:
        ends = [believed for _, _, believed in self.running.values()]
        for job, start in self.reserved.items():
            ends += [start, start + self.rows[job][3]]
        return sorted({self.now, *(t for t in ends if t > self.now)})

    def _fits(self, job: int, start: float) -> bool:
        _, wanted, _, estimate = self.rows[job]
        tried = [start, *(t for t in self._instants() if start < t < start + estimate)]
        return all(self._free_at(t, skip=job) >= wanted for t in tried)

    def _earliest(self, job: int) -> float:
        return next(t for t in self._instants() if self._fits(job, t))

    def _begin(self, job: int) -> None:
        _, _, runtime, estimate = self.rows[job]
        self.waiting.remove(job)
        self.reserved.pop(job, None)
        self.start[job] = self.now
        self.running[job] = (self.now, self.now + runtime, self.now + estimate)

    # rules

    def _none(self) -> None:
        while self.waiting and self.rows[self.waiting[0]][1] <= self._free_now():
            self._begin(self.waiting[0])

    def _skip(self) -> None:
        for job in list(self.waiting):
            if self.rows[job][1] <= self._free_now():
                self._begin(job)

    def _easy(self) -> None:
        self._none()
        if not self.waiting:
            return
        head = self.waiting[0]
        wanted = self.rows[head][1]
        ends = sorted(r[2] for r in self.running.values())
        shadow = next(t for t in ends if self._free_at(t) >= wanted)
        for job in self._candidates():
            _, count, _, estimate = self.rows[job]
            if count > self._free_now():
                continue
            spare = self._free_at(shadow) - wanted
            if self.now + estimate <= shadow or count <= spare:
                self._begin(job)

    def _ranked(self, jobs: list[int]) -> list[int]:
        if self.key is None:
            return jobs
        return sorted(jobs, key=lambda job: (self.key(self.now, self.rows[job]), job))

    def _candidates(self) -> list[int]:
        return self.waiting[1:]

    def _conservative(self, freed: bool, grown: bool, arrived: list[int]) -> None:
        self.waiting = self._ranked(self.waiting)
        if grown:
            kept, self.reserved = self.reserved, {}
            displaced = []
            for job in self.waiting:
                if self._fits(job, kept[job]):
                    self.reserved[job] = kept[job]
                else:
                    displaced.append(job)
            for job in displaced:
                self.reserved[job] = self._earliest(job)
        if freed:
            for job in self.waiting:
                before = self.reserved.pop(job)
                self.reserved[job] = min(before, self._earliest(job))
        for job in self._ranked(arrived):
            self.waiting.append(job)
            self.reserved[job] = self._earliest(job)
        self._start_due()

    def _start_due(self) -> None:
        for job in [j for j in self.waiting if self.reserved[j] <= self.now]:
            self._begin(job)


class NaiveEasyPlus(NaiveScheduler):
    """EASY that tries the shortest first and, with users, believes their last two runtimes."""

    def __init__(
        self,
        rows: Sequence[Row],
        processors: int,
        users: Sequence[int] | None = None,
        corrections: Sequence[float] = (),
    ) -> None:
        super().__init__(list(rows), processors, "easy")
        self.users = users
        self.corrections = corrections
        self.request = [row[3] for row in rows]
        self.ran: dict[int, list[float]] = {}

    def _take_ends(self) -> bool:
        for job, (start, end, _) in self.running.items():
            if end == self.now and self.users is not None:
                self.ran.setdefault(self.users[job], []).append(end - start)
        return super()._take_ends()

    def _take_expiries(self) -> bool:
        for job, (start, end, believed) in list(self.running.items()):
            said, request = self.rows[job][3], self.request[job]
            if believed == self.now and self.corrections and believed - start < request:
                longer = [
                    said + more for more in self.corrections if said + more > believed - start
                ]
                self.running[job] = (start, end, start + min([*longer, request]))
        return super()._take_expiries()

    def _decide(self, freed: bool, grown: bool, arrived: list[int]) -> None:
        for job in arrived if self.users is not None else ():
            ran = self.ran.get(self.users[job], [])
            if len(ran) >= 2:
                row = self.rows[job]
                self.rows[job] = (*row[:3], min(sum(ran[-2:]) / 2, self.request[job]))
        super()._decide(freed, grown, arrived)

    def _candidates(self) -> list[int]:
        return sorted(self.waiting[1:], key=lambda job: self.rows[job][3])
