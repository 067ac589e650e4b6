"""The worker: leases finished turns, has each window learnt, and decides what happens to a window that failed.

It runs in the background, apart from the request path. A failed window is retried with exponential back-off, and
finally becomes a dead letter with a reason. Outages do not count as attempts: an outage of our own parts stops learning
until they are back, one of the model affects only windows that need it; both are waited out for a limited time. Never
logs content.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from memory.errors import Conflict, Unavailable, Unusable
from memory.learn.gate import Secrets, SessionRateLimit
from memory.learn.plan import UnreadablePlan
from memory.learn.readers import Readers
from memory.learn.trigger_scanner import TriggerScanner
from memory.learn.window import LearningTurns, WindowLearning
from memory.learn.window_reading import WindowBounds
from memory.model import Role
from memory.ports import LearnDue, Lease, MemoryBank, RequestStores, TurnTriage
from memory.runtime.task_groups import pause_before, unwrapped
from memory.runtime.tracing import SpanName, Telemetry, TurnTrace
from memory.secrets.redaction import REDACT_ALL
from memory.service.turn_changes import TurnChanges

OWN_PARTS = frozenset({"milvus", "embedder", "turn_log"})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Times in seconds."""

    due: LearnDue = field(default_factory=LearnDue)
    queue_turns_max: int = 10_000  # `memproxy dlq replay` learns later what was shed; more would only wait
    windows_at_once: int = 4  # of different users; more would only be serialised by the models and the store
    lease_seconds: float = 30.0  # extended while working; after a crash nobody waits longer
    poll_seconds: float = 0.05  # a closed turn has to be learnt within a second
    recover_seconds: float = 0.5  # between two checks for turns left open by dead processes
    branch_seconds: float = 0.1  # between two checks for branches of conversations, and for words that left the record
    scan_seconds: float = 0.1  # between two scans of finished turns: "remember this" should not wait
    measure_seconds: float = 5.0  # between two measurements of the queue
    attempts_max: int = 8  # then the window is a dead letter; outages do not count
    retry_base_seconds: float = 1.0  # doubled at each attempt, and at each outage of the model
    retry_seconds_max: float = 300.0
    # While one of our parts is down nothing is leased, so that learning resumes as soon as it is back.
    outage_pause_seconds: float = 0.5
    # A longer outage of our own parts sends the affected windows to the dead letters.
    outage_seconds_max: float = 86_400.0
    model_outage_seconds_max: float = 21_600.0  # likewise for the model: long enough for a night's maintenance
    facts_per_session_max: int = 200  # per hour of conversation, one fact every 18 seconds; loops exceed it by far
    secrets: Secrets = field(default_factory=lambda: REDACT_ALL)  # as turns are recorded
    words_of: frozenset[Role] = frozenset()  # whose are kept as said, in rows of their own
    compares_arms: bool = False  # whether signs of conversations that are held out, or might have been, are counted
    drain_seconds: float = 10.0  # at the end, for windows in progress; interrupted ones are continued later


class WorkerTurns(LearningTurns, TurnTriage, Protocol):
    """The parts of the turn log that a worker needs: all but recording."""


class Worker:
    """Learns until told to stop. Any number of workers may share one turn log."""

    def __init__(
        self,
        *,
        turn_log: WorkerTurns,
        memories: MemoryBank,
        stores: RequestStores,
        readers: Readers,
        telemetry: Telemetry,
        settings: WorkerSettings | None = None,
    ) -> None:
        self.settings = settings or WorkerSettings()
        self._learning = WindowLearning(
            turn_log=turn_log,
            memories=memories,
            stores=stores,
            readers=readers,
            telemetry=telemetry,
            bounds=WindowBounds(
                SessionRateLimit(self.settings.facts_per_session_max),
                self.settings.secrets,
                self.settings.words_of,
                self.settings.compares_arms,
            ),
        )
        self._trigger_scanner = TriggerScanner(
            turn_log=turn_log,
            embedder=memories.embedder,
            readers=readers,
            due=self.settings.due,
            telemetry=telemetry,
            queue_turns_max=self.settings.queue_turns_max,
        )
        self._turn_changes = TurnChanges(turn_log=turn_log, memories=memories, stores=stores, telemetry=telemetry)
        self._turn_log = turn_log
        self._readers = readers
        self._clock = telemetry.clock
        self._jitter = telemetry.jitter
        self._metrics = telemetry.metrics
        self._tracer = telemetry.tracer
        self._is_log_down = False
        self._is_part_down = False  # according to the last postponed window

    async def run(self, until: asyncio.Event) -> None:
        """Work until `until` is set, then finish current windows within `drain_seconds`."""
        async with asyncio.TaskGroup() as upkeep:
            periodic = (
                upkeep.create_task(self._every(self.settings.recover_seconds, self._recover)),
                upkeep.create_task(self._every(self.settings.branch_seconds, self._turn_changes.settle_branches)),
                upkeep.create_task(self._every(self.settings.branch_seconds, self._turn_changes.delete_words)),
                upkeep.create_task(self._every(self.settings.scan_seconds, self._trigger_scanner.scan)),
                upkeep.create_task(self._every(self.settings.measure_seconds, self._measure)),
                upkeep.create_task(self._every(self.settings.measure_seconds, self._trigger_scanner.relieve)),
            )
            try:
                await self._serve(until)
            finally:
                for task in periodic:
                    task.cancel()

    async def work_off(self) -> int:
        """Handle all due windows, one after the other; returns how many. Raises `Unavailable`."""
        handled = 0
        await self._trigger_scanner.scan()
        while lease := await self._lease():
            await self._handle(lease)
            handled += 1
        await self._turn_changes.settle_branches()
        await self._turn_changes.delete_words()
        return handled

    async def _serve(self, until: asyncio.Event) -> None:
        slots = asyncio.Semaphore(self.settings.windows_at_once)
        under_way: set[asyncio.Task[None]] = set()

        def release(task: asyncio.Task[None]) -> None:
            under_way.discard(task)
            slots.release()

        async with asyncio.TaskGroup() as windows:
            while not until.is_set():
                await slots.acquire()
                lease = None if self._is_part_down else await self._lease_or_none()
                if lease is None:
                    slots.release()
                    await pause_before(until, self._pause_seconds())
                else:
                    task = windows.create_task(self._handle(lease))
                    under_way.add(task)
                    task.add_done_callback(release)
            await self._drain(set(under_way))

    def _pause_seconds(self) -> float:
        """Until the next poll; a part that was down is tried again after it."""
        was_down, self._is_part_down = self._is_part_down, False
        return self.settings.outage_pause_seconds if was_down else self.settings.poll_seconds

    async def _drain(self, under_way: set[asyncio.Task[None]]) -> None:
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=self.settings.drain_seconds)
            for task in late:
                task.cancel()

    async def _lease(self) -> Lease | None:
        settings = self.settings
        due = settings.due if self._readers.is_slow else LearnDue()
        return await self._turn_log.lease(now=self._clock(), seconds=settings.lease_seconds, due=due)

    async def _lease_or_none(self) -> Lease | None:
        """None also while the turn log is down, which is logged once."""
        try:
            lease = await self._lease()
        except Unavailable:
            if not self._is_log_down:
                log.warning("the turn log is unavailable: learning waits")
            self._is_log_down = True
            return None
        self._is_log_down = False
        return lease

    async def _handle(self, lease: Lease) -> None:
        """One job, with the boundary for its errors."""
        outcome = "learnt"
        opened = [TurnTrace(turn.id, turn.trace_id) for turn in lease.turns]
        with self._metrics.learn_seconds.time(), self._tracer.span(SpanName.LEARN, links=opened):
            try:
                async with self._kept(lease):
                    await self._learning.learn(lease)
                    await self._turn_log.acknowledge(lease)
                self._metrics.learn_lag_seconds.observe(max(0.0, self._clock() - lease.waiting_since))
            except (Unusable, Conflict) as error:  # after a lost lease another worker continues, and this does nothing
                outcome = await self._retry(lease, str(error))
            except Unavailable as error:
                outcome = await self._defer(lease, error)
            except UnreadablePlan as error:
                outcome = await self._give_up(lease, str(error))
            except Exception as error:  # noqa: BLE001 (one job: a fault in one window must not stop the others)
                log.error("a window could not be learnt", error=type(error).__name__, attempt=lease.attempt)
                outcome = await self._retry(lease, f"unexpected {type(error).__name__}")
            self._tracer.note(outcome=outcome, turns=len(lease.turns), attempt=lease.attempt)
        self._metrics.windows.labels(outcome).inc()

    @asynccontextmanager
    async def _kept(self, lease: Lease) -> AsyncIterator[None]:
        """Extends the lease while the body works; raises `Conflict` in the body once the lease is lost."""
        with unwrapped():
            async with asyncio.TaskGroup() as group:
                beat = group.create_task(self._extend(lease))
                yield
                beat.cancel()

    async def _extend(self, lease: Lease) -> None:
        seconds = self.settings.lease_seconds
        while True:
            await asyncio.sleep(seconds / 3)
            try:
                await self._turn_log.extend(lease, until=self._clock() + seconds)
            except Unavailable:
                continue  # the next step of the job shows whether the lease survived

    async def _retry(self, lease: Lease, reason: str) -> str:
        """Return the window to the queue for a retry, or after the last attempt move it to the dead letters."""
        if lease.attempt >= self.settings.attempts_max:
            return await self._give_up(lease, reason)
        due_at = self._clock() + self._back_off(lease.attempt - 1)
        return await self._report(self._turn_log.retry_at(lease, due_at=due_at, reason=reason), "retried")

    async def _defer(self, lease: Lease, error: Unavailable) -> str:
        """Return the window to the queue until the part may be back, or after the limit move it to the dead letters."""
        settings, now = self.settings, self._clock()
        is_ours = error.part in OWN_PARTS
        since = now if lease.outage_since is None else lease.outage_since
        if now - since >= (settings.outage_seconds_max if is_ours else settings.model_outage_seconds_max):
            return await self._give_up(lease, str(error))
        self._is_part_down = self._is_part_down or is_ours
        due_at = now + (settings.outage_pause_seconds if is_ours else self._back_off(lease.outages))
        waiting = self._turn_log.retry_at(lease, due_at=due_at, reason=str(error), outage_since=since)
        return await self._report(waiting, "sat_out")

    def _back_off(self, doublings: int) -> float:
        """Seconds, between half and all of the configured back-off after so many doublings."""
        exponent = min(doublings, 30)  # avoids an overflow in a long outage
        longest = min(self.settings.retry_base_seconds * 2.0**exponent, self.settings.retry_seconds_max)
        return longest * (0.5 + self._jitter() / 2)

    async def _give_up(self, lease: Lease, reason: str) -> str:
        burying = self._turn_log.move_to_dead_letters(lease, now=self._clock(), reason=reason)
        outcome = await self._report(burying, "buried")
        if outcome == "buried":
            log.error("a window is given up", reason=reason, attempts=lease.attempt)
        return outcome

    async def _report(self, reporting: Awaitable[None], outcome: str) -> str:
        """The outcome, or "lost" if the turn log is unavailable: the lease then expires, and the window is retried."""
        try:
            await reporting
        except (Conflict, Unavailable):
            return "lost"
        return outcome

    async def _every(self, seconds: float, task: Callable[[], Awaitable[None]]) -> None:
        """Run `task` periodically. An error of ours is logged once, and never stops learning."""
        known_faults: set[str] = set()
        while True:
            (outcome,) = await asyncio.gather(task(), return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(outcome, Unavailable):  # logged by `_lease_or_none`
                fault = type(outcome).__name__
                if fault not in known_faults:
                    log.error("a periodic task of the worker failed", task=task.__name__, error=fault)
                known_faults.add(fault)
            await asyncio.sleep(seconds)

    async def _recover(self) -> None:
        found = await self._turn_log.recover()
        if found:
            log.warning("turns left open by a dead process are learnt without their answers", turns=found)

    async def _measure(self) -> None:
        depth = await self._turn_log.depth(now=self._clock())
        for state in ("opened", "due", "leased", "retrying", "dead", "shed"):
            self._metrics.queue_turns.labels(state).set(getattr(depth, state))
        self._metrics.queue_oldest_seconds.set(depth.oldest_seconds)
