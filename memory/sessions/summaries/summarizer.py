"""Writes the summaries of sessions that are over, in the background of the worker, one at a time.

It never fails and never delays learning. A session that cannot be summarised is tried again later, with growing pauses,
and holds up nobody else: it is postponed before it is tried, so that any failure counts, also one that ends the
process. Never logs content.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import structlog

from memory.errors import MemproxyError, Unavailable
from memory.model import DueSession, SessionSummary, Turn
from memory.ports import ChatModel, Embedder, OptOuts, SessionSummaries, StatementReader, SummaryQueue, Tokens
from memory.runtime.tracing import Telemetry
from memory.sessions.compaction.sentences import Sentences
from memory.sessions.summaries import prose
from memory.sessions.summaries.salient_sentences import (
    SummaryText,
    has_substance,
    of_one_scope,
    salient_text,
    wanted_turns,
)

SESSIONS_PER_POLL_MAX = 4  # of different users
TURNS_MAX = 60  # of a session, the last: about 10 ms each for the trained reader
RETRY_SECONDS = 60.0  # doubled with each try
RETRY_SECONDS_MAX = 21_600.0

FAULTS = (MemproxyError, ArithmeticError, LookupError, TypeError, ValueError)

log = structlog.get_logger(__name__)


class KeptSummaries(SessionSummaries, SummaryQueue, Protocol):
    """Both ports, of one adapter."""


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """A chat model that writes summaries while it may. `name`: for the record; `seconds`: limit of one call."""

    model: ChatModel
    name: Callable[[], str]
    seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class SummarizerParts:
    """`reader`: the one that needs no server. `idle_seconds`: after them a session is over. `turns_min`: turns of
    substance of a session with a summary.
    """

    summaries: KeptSummaries
    reader: StatementReader
    embedder: Embedder
    tokens: Tokens
    sentences: Sentences
    opt_outs: OptOuts  # their sessions get none
    writer: SummaryWriter | None = None
    idle_seconds: float = 1_800.0
    turns_min: int = 2  # one is its own summary


class Summarizer:
    """Any number of processes may run one: they only repeat each other's work."""

    def __init__(self, parts: SummarizerParts, telemetry: Telemetry) -> None:
        self._parts = parts
        self._clock = telemetry.clock
        self._outcomes = telemetry.metrics.summaries
        self._is_broken = False

    async def work(self) -> int:
        """One round: returns the number of sessions looked at."""
        try:
            due = await self._parts.summaries.due(
                now=self._clock(), idle_seconds=self._parts.idle_seconds, limit=SESSIONS_PER_POLL_MAX
            )
        except FAULTS as error:
            self._report(type(error).__name__)
            return 0
        for session in due:
            self._outcomes.labels(await self._looked_at(session)).inc()
        return len(due)

    async def _looked_at(self, session: DueSession) -> str:
        """The outcome of one session. Another error than those that we expect ends the round; the next one goes on
        with other sessions.
        """
        pause = min(RETRY_SECONDS * 2.0 ** min(session.tries, 30), RETRY_SECONDS_MAX)
        try:
            await self._parts.summaries.postpone(session, until=self._clock() + pause)
            outcome = await self._summarise(session)
        except FAULTS as error:
            self._report(type(error).__name__)
            return "failed"
        self._is_broken = False
        return outcome

    async def _summarise(self, session: DueSession) -> str:
        parts = self._parts
        if await parts.opt_outs.since(session.user_id) is not None:
            return "opted_out" if await parts.summaries.put(session, None, None) else "overtaken"
        turns = of_one_scope(await parts.summaries.turns(session, limit=TURNS_MAX))
        claims = await parts.reader.read(turns, context=[])
        turns = await asyncio.to_thread(wanted_turns, turns, claims)
        text, made_by = None, parts.reader.name
        if sum(map(has_substance, turns)) >= parts.turns_min:
            text = await asyncio.to_thread(salient_text, turns, claims, sentences=parts.sentences, tokens=parts.tokens)
        if text is None:
            return "no_substance" if await parts.summaries.put(session, None, None) else "overtaken"
        written = await self._written(turns)
        outcome = "quoted"
        if written is not None and parts.writer is not None:
            text, made_by, outcome = written, f"{parts.writer.name()[:200]} summary-{prose.VERSION}", "written"
        (vector,) = await parts.embedder.embed([f"{text.title}. {text.text}"], is_urgent=False)
        summary = _summary(session, text, turns, made_by=made_by, made_at=self._clock())
        return outcome if await parts.summaries.put(session, summary, vector) else "overtaken"

    async def _written(self, turns: Sequence[Turn]) -> SummaryText | None:
        """By the model, if it may write, answers, and adds nothing."""
        writer = self._parts.writer
        if writer is None:
            return None
        messages, shown = prose.asked(turns)
        try:
            said = await writer.model.complete(
                messages, max_tokens=prose.ANSWER_TOKENS, seconds=writer.seconds, schema=prose.SCHEMA
            )
        except Unavailable:  # the session's own statements are there at once
            return None
        return await asyncio.to_thread(prose.checked, said.text, shown)

    def _report(self, fault: str) -> None:
        if not self._is_broken:
            log.warning("a session cannot be summarised now", error=fault)
        self._is_broken = True


def _summary(
    session: DueSession, text: SummaryText, turns: Sequence[Turn], *, made_by: str, made_at: float
) -> SessionSummary:
    scope = turns[-1].scope
    times = [turn.at for turn in turns]
    return SessionSummary(
        user_id=session.user_id,
        session_id=session.session_id,
        version=session.version + 1,
        title=text.title,
        text=text.text,
        first_at=min(times),
        last_at=max(times),
        turn_ids=text.turn_ids,
        project_id=scope.project_id,
        agent_id=scope.agent_id,
        made_by=made_by,
        made_at=made_at,
        series=session.series,
    )
