"""The worker: leases finished turns, has each window learnt, and decides what becomes of a window that failed.

Slow and patient, beside the request path. A window that fails is tried again, later and later, and in the end becomes a
dead letter with a reason. An outage is nobody's fault and costs no attempt: that of our own parts halts learning until
they are back, that of the model only the windows that need it; either is sat out for a time. Never logs content.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from memory.errors import Conflict, Unavailable, Unusable
from memory.learn import gate
from memory.learn.plan import UnreadablePlan
from memory.learn.rate_limit import SessionPace
from memory.learn.readers import Readers
from memory.learn.trigger_scanner import Watch, WatchSettings
from memory.learn.window import LearningTurns, WindowLearning
from memory.learn.window_reading import WindowBounds
from memory.ports import LearnDue, Lease, MemoryBank, RequestTraces, TurnTriage
from memory.runtime.instruments import Instruments
from memory.runtime.task_groups import unwrapped
from memory.secrets.redaction import REDACT_ALL, SecretClass, SecretPolicy

OWN_PARTS = frozenset({"milvus", "embedder", "turn_log"})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """Times in seconds."""

    due: LearnDue = field(default_factory=LearnDue)
    watch: WatchSettings = field(default_factory=WatchSettings)
    windows_at_once: int = 4  # of different users; the models and the store serialise more anyway
    lease_seconds: float = 30.0  # extended while working; after a crash nobody waits longer
    poll_seconds: float = 0.05  # a closed turn has to be learnt within a second
    recover_seconds: float = 0.5  # between two looks for turns that dead processes left open
    look_seconds: float = 0.1  # between two looks at what has ended: "remember this" is not made to wait
    measure_seconds: float = 5.0  # between two readings of the queue
    attempts_max: int = 8  # then the window is a dead letter; an outage is no attempt
    retry_base_seconds: float = 1.0  # doubled at each attempt, and at each that met an outage of the model
    retry_seconds_max: float = 300.0
    outage_pause_seconds: float = 0.5  # while a part of ours is down nothing is leased: memory is back as soon as it is
    outage_seconds_max: float = 86_400.0  # an outage of our own parts that lasts longer buries what it met
    model_outage_seconds_max: float = 21_600.0  # likewise of the model: a night's work on its server is sat out
    facts_per_session_max: int = 200  # within an hour of its talk: a lasting statement every 18 seconds
    secrets: Mapping[SecretClass, SecretPolicy] = field(default_factory=lambda: REDACT_ALL)  # as turns are recorded
    drain_seconds: float = 10.0  # at the end, for windows under way; what is cut off is taken up again later


class WorkerTurns(LearningTurns, TurnTriage, Protocol):
    """What of the turn log a worker needs: all but recording."""


class Worker:
    """Learns until told to stop. Any number of workers may share one turn log."""

    def __init__(
        self,
        *,
        turn_log: WorkerTurns,
        memories: MemoryBank,
        traces: RequestTraces,
        readers: Readers,
        instruments: Instruments,
        settings: WorkerSettings | None = None,
    ) -> None:
        self.settings = settings or WorkerSettings()
        self._learning = WindowLearning(
            turn_log=turn_log,
            memories=memories,
            traces=traces,
            readers=readers,
            instruments=instruments,
            bounds=WindowBounds(
                SessionPace(self.settings.facts_per_session_max), gate.Limits(secrets=self.settings.secrets)
            ),
        )
        self._watch = Watch(
            turn_log=turn_log,
            embedder=memories.embedder,
            readers=readers,
            due=self.settings.due,
            instruments=instruments,
            settings=self.settings.watch,
        )
        self._turn_log = turn_log
        self._readers = readers
        self._clock = instruments.clock
        self._jitter = instruments.jitter
        self._metrics = instruments.metrics
        self._is_log_down = False
        self._is_part_down = False  # seen by the last window that was put off

    async def run(self, until: asyncio.Event) -> None:
        """Work until `until` is set, then finish what is under way, at most `drain_seconds`."""
        async with asyncio.TaskGroup() as upkeep:
            watches = (
                upkeep.create_task(self._every(self.settings.recover_seconds, self._recover)),
                upkeep.create_task(self._every(self.settings.look_seconds, self._watch.look)),
                upkeep.create_task(self._every(self.settings.measure_seconds, self._measure)),
                upkeep.create_task(self._every(self.settings.measure_seconds, self._watch.relieve)),
            )
            try:
                await self._serve(until)
            finally:
                for watch in watches:
                    watch.cancel()

    async def work_off(self) -> int:
        """Handle what is due now, one window after the other; how many there were. Raises `Unavailable`."""
        handled = 0
        await self._watch.look()
        while lease := await self._lease():
            await self._handle(lease)
            handled += 1
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
                    await _wait(until, self._pause_seconds())
                else:
                    task = windows.create_task(self._handle(lease))
                    under_way.add(task)
                    task.add_done_callback(release)
            await self._drain(set(under_way))

    def _pause_seconds(self) -> float:
        """Until the next look for work; a part that was down gets a new chance after it."""
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
        """None also while the turn log is down, which is said once."""
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
        """One job, and the boundary at which its errors end."""
        outcome = "learnt"
        with self._metrics.learn_seconds.time():
            try:
                async with self._kept(lease):
                    await self._learning.learn(lease)
                    await self._turn_log.acknowledge(lease)
                self._metrics.learn_lag_seconds.observe(max(0.0, self._clock() - lease.waiting_since))
            except Conflict:
                outcome = "lost"  # somebody else goes on with it
            except Unusable as error:
                outcome = await self._put_off(lease, str(error))
            except Unavailable as error:
                outcome = await self._sit_out(lease, error)
            except UnreadablePlan as error:
                outcome = await self._bury(lease, str(error))
            except Exception as error:  # noqa: BLE001 (one job: a fault in one window must not stop the others)
                log.error("a window could not be learnt", error=type(error).__name__, attempt=lease.attempt)
                outcome = await self._put_off(lease, f"unexpected {type(error).__name__}")
        self._metrics.windows.labels(outcome).inc()

    @asynccontextmanager
    async def _kept(self, lease: Lease) -> AsyncIterator[None]:
        """Extends the lease while the body works; raises `Conflict` out of the body once the lease is lost."""
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
                continue  # the next step of the job will tell whether the lease outlived it

    async def _put_off(self, lease: Lease, reason: str) -> str:
        """Back into the queue for later, or, after the last attempt, to the dead letters."""
        if lease.attempt >= self.settings.attempts_max:
            return await self._bury(lease, reason)
        due_at = self._clock() + self._back_off(lease.attempt - 1)
        return await self._told(self._turn_log.retry_at(lease, due_at=due_at, reason=reason), "retried")

    async def _sit_out(self, lease: Lease, error: Unavailable) -> str:
        """Back into the queue until the part may be up again, or, at the end of our patience, to the dead letters."""
        settings, now = self.settings, self._clock()
        is_ours = error.part in OWN_PARTS
        since = now if lease.outage_since is None else lease.outage_since
        if now - since >= (settings.outage_seconds_max if is_ours else settings.model_outage_seconds_max):
            return await self._bury(lease, str(error))
        self._is_part_down = self._is_part_down or is_ours
        due_at = now + (settings.outage_pause_seconds if is_ours else self._back_off(lease.outages))
        waiting = self._turn_log.retry_at(lease, due_at=due_at, reason=str(error), outage_since=since)
        return await self._told(waiting, "sat_out")

    def _back_off(self, doublings: int) -> float:
        """Seconds, between half and all of what the settings say for so many."""
        exponent = min(doublings, 30)  # it must not overflow in a long outage
        longest = min(self.settings.retry_base_seconds * 2.0**exponent, self.settings.retry_seconds_max)
        return longest * (0.5 + self._jitter() / 2)

    async def _bury(self, lease: Lease, reason: str) -> str:
        log.error("a window is given up", reason=reason, attempts=lease.attempt)
        return await self._told(self._turn_log.bury(lease, now=self._clock(), reason=reason), "buried")

    async def _told(self, telling: Awaitable[None], outcome: str) -> str:
        """The outcome, or "lost" where the turn log cannot be told: then the lease runs out, and it is tried again."""
        try:
            await telling
        except (Conflict, Unavailable):
            return "lost"
        return outcome

    async def _every(self, seconds: float, watch: Callable[[], Awaitable[None]]) -> None:
        """Again and again. A fault of ours in a watch is said once, and never stops the learning beside it."""
        known_faults: set[str] = set()
        while True:
            (outcome,) = await asyncio.gather(watch(), return_exceptions=True)
            if isinstance(outcome, Exception) and not isinstance(outcome, Unavailable):  # said by `_lease_or_none`
                fault = type(outcome).__name__
                if fault not in known_faults:
                    log.error("a watch of the worker failed", watch=watch.__name__, error=fault)
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


async def _wait(until: asyncio.Event, seconds: float) -> None:
    """Until the event is set, at most `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            await until.wait()
    except TimeoutError:
        return
