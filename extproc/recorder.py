"""Brings what was observed into the turn log, off the token path: no stream waits for a disk or loses a turn.

The writes, and the reading of large bodies, belong to the recorder, not to the stream that saw them, which may be
cancelled at any time. It must never write the end of a turn before its beginning, and never let a broken log reach a
chat: what cannot be written is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypeVar

import structlog

from extproc.observe import CloseTurn, NoteJudged, Observation, OpenTurn
from extproc.turn_links import ContinueTurn, continue_turn, earlier_link, keep_link
from memory.errors import NotRecordable, Unavailable
from memory.model import ChainLink, TurnStatus
from memory.ports import Clock, TurnRecording
from memory.recall.notes.template_compatibility import PlacementLessons
from memory.runtime.metrics import Metrics
from memory.runtime.offload import run_offloaded

log = structlog.get_logger(__name__)

PENDING_MAX = 10_000  # a turn is some KB: past it, a log that hangs would eat the memory of the filter

T = TypeVar("T")
Seen: TypeAlias = OpenTurn | CloseTurn | ContinueTurn | None
Opening: TypeAlias = asyncio.Task[ChainLink | None]
Step: TypeAlias = Callable[[Observation], Seen]


class Containment(Protocol):
    """Awaits what it is given and turns any error into None, having reported it."""

    async def __call__(self, work: Coroutine[None, None, T]) -> T | None: ...


class TurnRecorder:
    """One per process. `async with` it; leaving waits for what is under way."""

    def __init__(
        self,
        turn_log: TurnRecording,
        metrics: Metrics,
        clock: Clock,
        contained: Containment,
        redact: Callable[[str], str],
        lessons: PlacementLessons,
    ) -> None:
        """`redact` takes secrets out of a text before the log sees it: no file ever holds them."""
        self._redact = redact
        self._lessons = lessons
        self._turn_log = turn_log
        self._metrics = metrics
        self._contained = contained
        self._group = asyncio.TaskGroup()
        self._pending = 0
        self._learning: set[asyncio.Task[None]] = set()
        self._is_failing = False
        self.clock = clock
        self.is_leaving = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._group.__aexit__(kind, error, trace)

    def leave(self) -> None:
        """From now on a stream that breaks off was broken off by us: its turn stays open, and becomes `unknown`.

        What is being found out about models is given up: it waits for the upstream, and can be found out again.
        """
        self.is_leaving = True
        for task in self._learning:
            task.cancel()

    def start(self, work: Coroutine[None, None, T]) -> asyncio.Task[T | None]:
        """Do it here, whatever becomes of the stream that asked for it."""
        self._pending += 1
        task = self._group.create_task(self._contained(work))
        task.add_done_callback(self._done)
        return task

    def open(self, opening: OpenTurn) -> Opening | None:
        """Start writing the beginning. The task gives what later requests may go on from; None when we are full.

        Its result is None where the turn could not be written.
        """
        if self._pending >= PENDING_MAX:
            self._metrics.turns_lost.labels("backlog").inc()
            return None
        task = self.start(self._open(opening))
        task.add_done_callback(self._count_failed)
        return task

    def close(self, closing: CloseTurn, *, after: Opening) -> None:
        """Start writing the end, once `after`, its beginning, is written."""
        self.start(self._close(closing, after)).add_done_callback(self._count_failed)

    def continue_turn(self, continuing: ContinueTurn) -> None:
        """Start writing what a further call of a tool loop answered, to the turn that it belongs to."""
        if self._pending < PENDING_MAX:
            self.start(self._continue(continuing)).add_done_callback(self._count_failed)

    def meet(self, model: str) -> None:
        """A request of that model goes by: find out about a new one, beside it."""
        if self._pending < PENDING_MAX and self._lessons.is_new(model):
            self._learn(self._lessons.meet(model))

    def judge(self, judged: NoteJudged) -> None:
        """The upstream took or refused a request with a note: learn from it, beside its reply."""
        if not judged.is_refused:
            self._lessons.taken(judged.model, judged.placement)
        elif self._pending < PENDING_MAX:
            self._learn(self._lessons.refused(judged.model, judged.placement))

    def _learn(self, lesson: Coroutine[None, None, None]) -> None:
        task = self.start(lesson)
        self._learning.add(task)
        task.add_done_callback(self._learning.discard)

    def _done(self, _: asyncio.Task[T | None]) -> None:
        self._pending -= 1

    def _count_failed(self, task: asyncio.Task[T | None]) -> None:
        """What the boundary ended, and logged, left no result: that turn, or its end, is lost."""
        if task.cancelled() or task.result() is None:
            self._metrics.turns_lost.labels("failed").inc()

    async def _open(self, opening: OpenTurn) -> ChainLink | None:
        turn = opening.turn
        messages = [replace(m, content=await run_offloaded(self._redact, m.content)) for m in turn.messages]
        try:
            earlier = await earlier_link(self._turn_log.chains, opening.links)
            scope = (
                replace(turn.scope, session_id=earlier.session_id) if earlier and opening.session_from else turn.scope
            )
            await self._turn_log.open(replace(turn, scope=scope, messages=tuple(messages)))
        except Unavailable as error:
            self._lost(error)
            return None
        self._recovered()
        return ChainLink(scope.session_id, turn.id, earlier.note_keys if earlier else ())

    async def _close(self, closing: CloseTurn, after: Opening) -> bool:
        if closing.is_over_cap:
            self._metrics.replies_over_cap.inc()
        link = await after
        if link is None:
            return False
        answer = await self._redacted(closing.answer)
        try:
            if closing.links is not None:  # first: the client may be about to go on from it
                await keep_link(self._turn_log.chains, closing.links, link, at=closing.answered_at)
            await self._turn_log.finish(
                closing.turn_id,
                status=closing.status,
                answer=answer,
                answered_at=closing.answered_at,
                receipt_id=closing.receipt_id,
            )
        except Unavailable as error:
            self._lost(error)
            return False
        self._metrics.turns.labels(closing.status).inc()
        self._recovered()
        return True

    async def _continue(self, continuing: ContinueTurn) -> bool:
        """False where nobody knows the turn that the tool loop began with."""
        if continuing.is_over_cap:
            self._metrics.replies_over_cap.inc()
        is_answered = continuing.status is TurnStatus.CLOSED
        answer = await self._redacted(continuing.answer) if is_answered else ""
        try:
            return await continue_turn(self._turn_log, continuing, answer)
        except Unavailable as error:
            self._lost(error)
            return False

    async def _redacted(self, answer: str) -> str:
        try:
            return await run_offloaded(self._redact, answer)
        except NotRecordable as error:
            log.error("answer_not_recorded", error=str(error))
            self._metrics.turns_lost.labels("failed").inc()
            return ""  # what the user said is learnt all the same

    def _lost(self, error: Unavailable) -> None:
        """Count each, tell once."""
        self._metrics.turns_lost.labels("unavailable").inc()
        if not self._is_failing:
            log.warning("turn_log_down", error=str(error))
        self._is_failing = True

    def _recovered(self) -> None:
        if self._is_failing:
            log.info("turn_log_up")
        self._is_failing = False


class Watch:
    """One exchange being observed: its automaton, and what of it is still being read or written."""

    def __init__(self, recorder: TurnRecorder, observation: Observation) -> None:
        self._recorder = recorder
        self._observation = observation
        self._reading: asyncio.Task[None] | None = None
        self._opening: Opening | None = None

    @property
    def is_idle(self) -> bool:
        return self._observation.is_idle

    async def take(self, step: Step, *, is_end: bool) -> None:
        """Let the automaton see the next message. `is_end`: a body ends with it, and will be read now."""
        if is_end and self._observation.is_heavy:
            self._reading = self._recorder.start(self._in_thread(step))
            await asyncio.shield(self._reading)
        else:
            self._record(step(self._observation))

    def end(self) -> None:
        """The stream is over, in whatever way. Does not wait."""
        if self._reading is not None or self._observation.is_heavy:
            self._recorder.start(self._end_later(self._reading))
        else:
            self._record(self._last(self._observation))

    async def _in_thread(self, step: Step) -> None:
        self._record(await asyncio.to_thread(step, self._observation))

    async def _end_later(self, reading: asyncio.Task[None] | None) -> None:
        """The automaton is no meeting place: let the thread leave it first."""
        if reading is not None:
            await reading
        await self._in_thread(self._last)

    def _last(self, observation: Observation) -> Seen:
        return observation.on_end(at=self._recorder.clock())

    def _record(self, seen: Seen) -> None:
        if self._observation.judged is not None:
            self._recorder.judge(self._observation.judged)
            self._observation.judged = None
        match seen:
            case OpenTurn():
                self._opening = self._recorder.open(seen)
            case ContinueTurn():
                self._recorder.continue_turn(seen)
            case CloseTurn() if self._opening is not None:
                if not (self._recorder.is_leaving and seen.status is TurnStatus.ABORTED):
                    self._recorder.close(seen, after=self._opening)
