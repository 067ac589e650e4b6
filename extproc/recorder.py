"""Writes observed turns to the turn log in the background: no stream waits for a disk, and no turn is lost.

Writes, and parsing of large bodies, belong to the recorder and not to the stream, which may be cancelled at any time.
The end of a turn is never written before its beginning. A failing log never affects a chat: what it does not take waits
in memory, within bounds, and beyond them lost turns are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

import structlog

from extproc.exchange import CloseTurn, LeaveOut, Observed, OpenTurn
from extproc.large_bodies import LargeBodies
from extproc.observe import LengthRefusal, NoteOutcome, Observation
from extproc.pending_writes import PendingWrites, text_bytes
from extproc.recording_beats import RecordingBeats
from extproc.resent_history import RecordingPolicy, leave_out, placed, to_fill_in
from extproc.retrying_writes import RetryingWrites
from extproc.tool_recording import without_secrets
from extproc.turn_links import ContinueTurn, LinkExchange, continue_turn, earlier_link, keep_link, link_exchange
from memory.errors import NotRecordable, Unavailable
from memory.model import ChainLink, TurnStatus
from memory.ports import Clock, TurnRecording
from memory.recall.known_windows import KnownWindows
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.runtime.metrics import Metrics
from memory.runtime.offload import run_each_offloaded, run_offloaded
from memory.runtime.task_groups import ErrorBoundary
from memory.runtime.tracing import SpanName

log = structlog.get_logger(__name__)

T = TypeVar("T")
Seen: TypeAlias = Observed | None
Work: TypeAlias = AbstractContextManager[None]
Opening: TypeAlias = asyncio.Task[ChainLink | None]
Step: TypeAlias = Callable[[Observation], Seen]
LIGHT: Work = nullcontext()


@dataclass(frozen=True, slots=True)
class ModelLessons:
    """Who learns about the upstream's models from its answers."""

    templates: TemplateCompatibility
    windows: KnownWindows


class TurnRecorder:
    """One per process. Open with `async with`; on exit it waits for pending writes."""

    def __init__(
        self,
        turn_log: TurnRecording,
        metrics: Metrics,
        clock: Clock,
        error_boundary: ErrorBoundary,
        policy: RecordingPolicy,
        lessons: ModelLessons,
    ) -> None:
        self._policy = policy
        self._lessons = lessons
        self._turn_log = turn_log
        self._metrics = metrics
        self._error_boundary = error_boundary
        self._group = asyncio.TaskGroup()
        self._pending = PendingWrites()
        self._retrying = RetryingWrites(self._report_outage)
        self.large_bodies = LargeBodies()
        self._probes: set[asyncio.Task[None]] = set()
        self._beats = RecordingBeats(turn_log.times, clock)
        self._beating: asyncio.Task[None] | None = None
        self._is_failing = False
        self.clock = clock
        self.is_leaving = False

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        await self._beats.beat()
        self._beating = self._group.create_task(self._beats.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._beating is not None:
            self._beating.cancel()
        self._retrying.give_up()
        await self._group.__aexit__(kind, error, trace)
        await self._beats.end()

    def leave(self) -> None:
        """From now on, interrupted streams were interrupted by us: their turns stay open, and become `unknown`.

        Running probes of models are cancelled: they wait for the upstream, and can be repeated.
        """
        self.is_leaving = True
        for task in self._probes:
            task.cancel()

    def start(self, work: Coroutine[None, None, T], *, size: int = 0) -> asyncio.Task[T | None]:
        """Run `work` independently of the stream that requested it. `size`: bytes of texts that it keeps meanwhile."""
        self._pending.add(size)
        task = self._group.create_task(self._error_boundary(work))
        task.add_done_callback(lambda _: self._pending.remove(size))
        return task

    def open(self, opening: OpenTurn, work: Work = LIGHT) -> Opening | None:
        """Start writing the beginning; None if too many writes are pending. `work`: around what takes long.

        The task's result is the link that later requests may continue, or None if the turn could not be written.
        """
        size = text_bytes(opening)
        if not self._pending.has_room(size):
            self._metrics.turns_lost.labels("backlog").inc()
            self._beats.miss()
            return None
        task = self.start(self._open(opening, work), size=size)
        task.add_done_callback(self._count_failed)
        return task

    def close(self, closing: CloseTurn, *, after: Opening) -> None:
        """Start writing the end, after the beginning (`after`): without its answer, if too much is pending."""
        size = text_bytes(closing)
        if not self._pending.has_room_for_bytes(size):
            self._metrics.turns_lost.labels("backlog").inc()
            closing, size = replace(closing, answer=""), 0
        self.start(self._close(closing, after), size=size).add_done_callback(self._count_failed)

    def continue_turn(self, continuing: ContinueTurn) -> None:
        """Start adding the answer of a further call of a tool loop to its turn."""
        size = text_bytes(continuing)
        if not self._pending.has_room(size):
            self._metrics.turns_lost.labels("backlog").inc()
            return
        self.start(self._continue(continuing), size=size).add_done_callback(self._count_failed)

    def leave_out(self, exchange: LeaveOut, work: Work = LIGHT) -> None:
        """Start storing that this exchange must not be filled in later."""
        size = text_bytes(exchange)
        if not self._pending.has_room(size):
            self._metrics.turns_lost.labels("backlog").inc()
            return
        self.start(self._leave_out(exchange, work), size=size)

    def link_exchange(self, exchange: LinkExchange) -> None:
        """Start storing the link of an exchange that is not recorded."""
        if self._pending.has_room():
            self.start(self._link(exchange))

    def pass_by(self) -> None:
        """Count a large body for which there was no time."""
        self._metrics.bodies_passed.labels("busy_unlearnt").inc()
        self._beats.miss()

    def probe_template(self, model: str) -> None:
        """Probe the template of a model seen for the first time, in the background."""
        if self._pending.has_room() and self._lessons.templates.is_new(model):
            self._start_probe(self._lessons.templates.probe(model))

    def record_note_outcome(self, note_outcome: NoteOutcome) -> None:
        """Report that the upstream accepted or refused a request with a note, in the background."""
        if not note_outcome.is_refused:
            self._lessons.templates.accepted(note_outcome.model, note_outcome.placement)
        elif self._pending.has_room():
            self._start_probe(self._lessons.templates.refused(note_outcome.model, note_outcome.placement))

    def record_length_refusal(self, refusal: LengthRefusal) -> None:
        """Report that the upstream refused a request for its length."""
        self._lessons.windows.learn(refusal.model, refusal.context_tokens)

    def _start_probe(self, probe: Coroutine[None, None, None]) -> None:
        task = self.start(probe)
        self._probes.add(task)
        task.add_done_callback(self._probes.discard)

    def _count_failed(self, task: asyncio.Task[T | None]) -> None:
        """A task without a result failed and was logged: the turn, or its end, is lost."""
        if task.cancelled() or task.result() is None:
            self._metrics.turns_lost.labels("failed").inc()
            self._beats.miss()

    async def _open(self, opening: OpenTurn, work: Work) -> ChainLink | None:
        turn = opening.turn
        try:
            with work:
                texts = await run_each_offloaded(self._policy.redact, [message.content for message in turn.messages])
            messages = (replace(one, content=text) for one, text in zip(turn.messages, texts, strict=True))
            opening = replace(opening, turn=replace(turn, messages=tuple(messages)))
            link = await self._retrying.write(partial(self._place, opening, work))
        except Unavailable as error:
            self._lost(error)
            return None
        self._recovered()
        return link

    async def _place(self, opening: OpenTurn, work: Work) -> ChainLink:
        """Write the turn, already redacted, where its conversation continues. Raises `Unavailable`."""
        earlier = await earlier_link(self._turn_log.chains, opening.links)
        turn, sent = placed(opening.turn, opening, earlier)
        trees = self._turn_log.trees
        with self._policy.tracer.span(SpanName.OPEN_TURN):
            session_id = await trees.open_known(turn, sent)
        if session_id is None:
            with work:
                sent = await to_fill_in(trees, turn, sent, self._policy)
            with self._policy.tracer.span(SpanName.OPEN_TURN):
                session_id = await trees.open(turn, sent)
        if not session_id:
            return ChainLink("", "")  # of a user who has opted out, or was erased meanwhile
        return ChainLink(session_id, turn.id, earlier.note_keys if earlier else ())

    async def _close(self, closing: CloseTurn, after: Opening) -> bool:
        if closing.is_over_cap:
            self._metrics.replies_over_cap.inc()
        link = await after
        if link is None:
            return False
        if not link.turn_id:
            return True  # of a user who has opted out, or was erased
        answer = await self._redacted(closing.answer)
        try:
            writes = [self._retrying.write(partial(self._finish, closing, answer))]
            if closing.links is not None:  # queued first: the client may continue at once
                keeping = partial(keep_link, self._turn_log.chains, closing.links, link, at=closing.answered_at)
                writes.insert(0, self._retrying.write(keeping))
            await asyncio.gather(*writes)  # together: neither waits for the other's commit, nor is left out if it fails
        except Unavailable as error:
            self._lost(error)
            return False
        self._metrics.turns.labels(closing.status).inc()
        self._recovered()
        return True

    async def _continue(self, continuing: ContinueTurn) -> bool:
        """False if the turn that started the tool loop is unknown: no turn is lost, but its answer is not on record."""
        if continuing.is_over_cap:
            self._metrics.replies_over_cap.inc()
        try:
            if await self._retrying.write(partial(self._policy.is_opted_out, continuing.links.user_id)):
                return True
        except Unavailable as error:
            self._lost(error)
            return False
        is_answered = continuing.status is TurnStatus.CLOSED
        answer = await self._redacted(continuing.answer) if is_answered else ""
        continuing = replace(continuing, tools=await without_secrets(continuing.tools, self._policy.redact))
        try:
            is_known = await self._retrying.write(partial(continue_turn, self._turn_log, continuing, answer))
        except Unavailable as error:
            self._lost(error)
            return False
        if answer and not is_known:
            self._metrics.answers_without_turn.inc()
        return is_known

    async def _link(self, exchange: LinkExchange) -> None:
        """No turn is lost without the link: the next request starts another session."""
        with suppress(Unavailable):
            if not await self._policy.is_opted_out(exchange.links.user_id):
                await link_exchange(self._turn_log.chains, exchange)

    async def _leave_out(self, exchange: LeaveOut, work: Work) -> None:
        try:
            await self._retrying.write(partial(leave_out, self._turn_log.trees, exchange, self._policy, work))
        except Unavailable as error:
            self._lost(error)

    async def _finish(self, closing: CloseTurn, answer: str) -> None:
        with self._policy.tracer.span(SpanName.CLOSE_TURN):
            await self._turn_log.finish(
                closing.turn_id,
                status=closing.status,
                answer=answer,
                answered_at=closing.answered_at,
                receipt_id=closing.receipt_id,
            )

    async def _redacted(self, answer: str) -> str:
        try:
            return await run_offloaded(self._policy.redact, answer)
        except NotRecordable as error:
            log.error("answer_not_recorded", error=str(error))
            self._metrics.turns_lost.labels("failed").inc()
            return ""  # the user's messages are learnt all the same

    def _lost(self, error: Unavailable) -> None:
        self._metrics.turns_lost.labels("unavailable").inc()
        self._report_outage(error)

    def _report_outage(self, error: Unavailable) -> None:
        """Log once per outage."""
        if not self._is_failing:
            log.warning("turn_log_down", error=str(error))
        self._is_failing = True

    def _recovered(self) -> None:
        if self._is_failing:
            log.info("turn_log_up")
        self._is_failing = False


class ObservedStream:
    """One exchange being observed: its state machine, and the pending parsing and writing."""

    def __init__(self, recorder: TurnRecorder, observation: Observation) -> None:
        self._recorder = recorder
        self._observation = observation
        self._reading: asyncio.Task[None] | None = None
        self._opening: Opening | None = None
        self._work: Work = LIGHT  # around what takes long

    @property
    def is_idle(self) -> bool:
        return self._observation.is_idle

    async def take(self, step: Step, *, is_end: bool) -> None:
        """Pass the next message to the state machine. `is_end`: it completes a body, which is parsed now."""
        observation = self._observation
        if is_end and observation.is_heavy:
            self._reading = self._recorder.start(
                self._in_turn(step) if observation.is_request_large else self._in_thread(step)
            )
            await asyncio.shield(self._reading)
            return
        self._record(step(observation))
        if observation.is_request_large and not self._recorder.large_bodies.has_room(observation.exchange):
            self._pass_by()

    def end(self) -> None:
        """The stream is over, for whatever reason. Does not wait."""
        if self._reading is not None or self._observation.is_heavy:
            self._recorder.start(self._end_later(self._reading))
        else:
            self._record(self._last(self._observation))

    async def _in_turn(self, step: Step) -> None:
        bodies, exchange = self._recorder.large_bodies, self._observation.exchange
        if not await bodies.has_turn(exchange):
            self._pass_by()
            return
        self._work = bodies.work(exchange)
        with self._work:
            await self._in_thread(step)

    def _pass_by(self) -> None:
        self._observation.pass_by()
        self._recorder.pass_by()

    async def _in_thread(self, step: Step) -> None:
        self._record(await asyncio.to_thread(step, self._observation))

    async def _end_later(self, reading: asyncio.Task[None] | None) -> None:
        """The state machine is not thread-safe: wait until the thread has left it."""
        if reading is not None:
            await reading
        await self._in_thread(self._last)

    def _last(self, observation: Observation) -> Seen:
        return observation.on_end(at=self._recorder.clock())

    def _record(self, seen: Seen) -> None:
        if self._observation.note_outcome is not None:
            self._recorder.record_note_outcome(self._observation.note_outcome)
            self._observation.note_outcome = None
        if self._observation.length_refusal is not None:
            self._recorder.record_length_refusal(self._observation.length_refusal)
            self._observation.length_refusal = None
        match seen:
            case OpenTurn():
                self._opening = self._recorder.open(seen, self._work)
            case LeaveOut():
                self._recorder.leave_out(seen, self._work)
            case ContinueTurn():
                self._recorder.continue_turn(seen)
            case LinkExchange():
                self._recorder.link_exchange(seen)
            case CloseTurn() if self._opening is not None:
                if not (self._recorder.is_leaving and seen.status is TurnStatus.ABORTED):
                    self._recorder.close(seen, after=self._opening)
