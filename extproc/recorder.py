"""Writes observed turns to the turn log in the background: no stream waits for a disk, and no turn is lost.

Writes, and parsing of large bodies, belong to the recorder and not to the stream, which may be cancelled at any time.
The end of a turn is never written before its beginning. A failing log never affects a chat: what it does not take waits
in memory, within bounds, and beyond them lost turns are counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

import structlog

from extproc.exchange import CloseTurn, LeaveOut, OpenTurn
from extproc.large_bodies import LIGHT, LargeBodies, Work
from extproc.observe import LengthRefusal, NoteOutcome
from extproc.resent_history import RecordingPolicy, leave_out, placed, to_fill_in
from extproc.retrying_writes import PendingWrites, RecordingBeats, RetryingWrites, text_bytes
from extproc.turn_links import ContinueTurn, LinkExchange, continue_turn, earlier_link, keep_link, link_exchange
from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX
from memory.errors import NotRecordable, Unavailable
from memory.model import ChainLink, ToolMessage, TurnStatus
from memory.ports import Clock, TurnRecording
from memory.recall.known_windows import KnownWindows
from memory.recall.notes.template_compatibility import TemplateCompatibility
from memory.runtime.metrics import Metrics
from memory.runtime.offload import run_each_offloaded, run_offloaded
from memory.runtime.task_groups import ErrorBoundary
from memory.runtime.tracing import SpanName

STORED_CHARACTERS_MAX = 4_000  # of one call or result; finding secrets in more would take the time of chats
CUT = " … [cut]"  # the end of a text that was longer
_KEY_BEGINS = "-----BEGIN"  # of a private key, which may be longer than what is looked through

log = structlog.get_logger(__name__)

T = TypeVar("T")
Opening: TypeAlias = asyncio.Future[ChainLink | None]


@dataclass(frozen=True, slots=True)
class ModelLessons:
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
        self._retrying = RetryingWrites(self._report_outage, metrics.turns_waiting)
        self.large_bodies = LargeBodies()
        self._probes: set[asyncio.Task[None]] = set()
        self._beats = RecordingBeats(turn_log.times, clock)
        self._beating: asyncio.Task[None] | None = None
        self._is_failing = False
        self.clock = clock
        self.is_leaving = False
        self.unread_bytes = 0  # of requests that wait for their replies

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
        """From now on, interrupted streams were interrupted by us: nobody knows how their turns ended.

        Running probes of models are cancelled: they wait for the upstream, and can be repeated.
        """
        self.is_leaving = True
        for task in self._probes:
            task.cancel()

    def start(self, work: Coroutine[None, None, T | None], *, size: int = 0) -> asyncio.Task[T | None]:
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
        if not self._has_room(size):
            self._beats.miss()
            return None
        task = self.start(self._open(opening, work), size=size)
        task.add_done_callback(self._count_failed)
        return task

    def open_early(self, opening: OpenTurn, work: Work = LIGHT) -> Opening | None:
        """Likewise, before the upstream gets the request; the result comes after `early_seconds_max` at the latest, and
        is None if the turn is not in the log by then.

        Tried once, and nothing is lost if it fails: whoever observes the reply opens the turn again, which changes
        nothing if it is open.
        """
        size = text_bytes(opening)
        if self._retrying.is_waiting or not self._pending.has_room(size):
            return None
        return self.start(self._in_time(self.start(self._open_once(opening, work), size=size)))

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
        if self._has_room(size):
            self.start(self._continue(continuing), size=size).add_done_callback(self._count_failed)

    def leave_out(self, exchange: LeaveOut, work: Work = LIGHT) -> None:
        """Start storing that this exchange must not be filled in later."""
        size = text_bytes(exchange)
        if self._has_room(size):
            self.start(self._leave_out(exchange, work), size=size)

    def link_exchange(self, exchange: LinkExchange) -> None:
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
        self._lessons.windows.learn(refusal.model, refusal.context_tokens)

    def _has_room(self, size: int) -> bool:
        """Without room, what it was for is lost, and counted."""
        has_room = self._pending.has_room(size)
        if not has_room:
            self._metrics.turns_lost.labels("backlog").inc()
        return has_room

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
        try:
            opening = await self._recordable(opening, work)
            with self._policy.tracer.span(SpanName.OPEN_TURN, of_turn=opening.turn.id):
                link = await self._retrying.write(partial(self._place, opening, work))
        except Unavailable as error:
            self._lost(error)
            return None
        self._recovered()
        return link

    async def _in_time(self, opening: Opening) -> ChainLink | None:
        await asyncio.wait((opening,), timeout=self._policy.early_seconds_max)
        return opening.result() if opening.done() and not opening.cancelled() else None

    async def _open_once(self, opening: OpenTurn, work: Work) -> ChainLink | None:
        opening = await self._recordable(opening, work)
        with suppress(Unavailable), self._policy.tracer.span(SpanName.OPEN_TURN, of_turn=opening.turn.id):
            return await self._place(opening, work)
        return None

    async def _recordable(self, opening: OpenTurn, work: Work) -> OpenTurn:
        """Without secrets in the user's new messages."""
        turn = opening.turn
        self._metrics.unknown_timezones.inc(opening.is_zone_unknown)
        with work():
            texts = await run_each_offloaded(self._policy.redact, [message.content for message in turn.messages])
        messages = (replace(one, content=text) for one, text in zip(turn.messages, texts, strict=True))
        return replace(opening, turn=replace(turn, messages=tuple(messages)))

    async def _place(self, opening: OpenTurn, work: Work) -> ChainLink:
        """Write the turn, already redacted, where its conversation continues. Raises `Unavailable`."""
        earlier = await earlier_link(self._turn_log.chains, opening.links)
        turn, sent = placed(opening.turn, opening, earlier)
        trees = self._turn_log.trees
        session_id = await trees.open_known(turn, sent)
        if session_id is None:
            with work():
                sent = await to_fill_in(trees, turn, sent, self._policy)
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
            is_answered = continuing.status is TurnStatus.CLOSED
            answer = await self._redacted(continuing.answer) if is_answered else ""
            continuing = replace(continuing, tools=await without_secrets(continuing.tools, self._policy.redact))
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


async def without_secrets(tools: Sequence[ToolMessage], redact: Callable[[str], str]) -> tuple[ToolMessage, ...]:
    """Tool calls and results as they can be recorded: without secrets, and cut.

    A cut text ends well before the place where it was cut first, so that it holds no part of a secret that was too long
    to be recognised.
    """
    recordable = []
    for tool in tools:
        try:
            content = await run_offloaded(redact, tool.content)
            name = await run_offloaded(redact, tool.name)
        except NotRecordable as error:
            log.error("tool_message_not_recorded", error=str(error))
            continue
        if len(tool.content) >= CONTENT_CHARACTERS_MAX:
            head = content[: -(CONTENT_CHARACTERS_MAX - STORED_CHARACTERS_MAX)].partition(_KEY_BEGINS)[0]
            content = head[: STORED_CHARACTERS_MAX - len(CUT)] + CUT
        recordable.append(replace(tool, name=name, content=content[:STORED_CHARACTERS_MAX]))
    return tuple(recordable)
