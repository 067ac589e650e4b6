"""Prepares the states of long conversations in the background, for their next requests.

One history at a time, so that chats keep the processor. A state is built from the one before it and the messages since,
in steps, so that it does not depend on how often it was prepared. Where there is a writer, it writes the last segment;
the first state that is stored for a question stays, so that the same history keeps its bytes. Whatever is missing or
late: the request goes through with its full history.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from memory.chat.exchanges import Exchange, exchanges_of
from memory.errors import NotRecordable, Unavailable
from memory.model import Claim, CompactedState, Conversation, HistorySegment, Message, Role, Scope, Turn
from memory.ports import CompactedStates, ResentHistory, StatementReader, Tokens
from memory.ports.reading import GroundedWriter
from memory.runtime.task_groups import ErrorBoundary
from memory.runtime.tracing import Telemetry
from memory.sessions.compaction.cuts import NO_CUT, STATE_TOKENS_MAX, Cut, due_cuts, message_sizes
from memory.sessions.compaction.sentence_kinds import SentenceKind
from memory.sessions.compaction.sentences import Sentences, opening_of, segment_of, users_messages
from memory.sessions.compaction.state_text import (
    Plain,
    made_plain,
    needed_items,
    needed_tokens,
    next_state,
    without_need,
)
from memory.sessions.compaction.written import TASK, entry_faults, spoken_sentences, written_segment

WAITING_MAX = 16  # histories; a further one is prepared at its next request
SESSION = "compaction"  # of turns that are read here; nothing is stored under it
CONTEXT_MESSAGES = 12  # before a segment, among which the exchange is found that its first message replies to
WRITING_SECONDS_MAX = 60.0  # then a state consists of sentences
CHARACTERS_MAX = 4 << 20  # of one history that waits in memory; a larger one goes through in full


Kinds = Callable[[Sequence[str]], Awaitable[Mapping[str, SentenceKind]]]
"""The kinds of a user's sentences; without those in doubt. Raises `Unavailable`."""

Held = Callable[[str, Sequence[str]], Awaitable[Collection[str]]]
"""Those of the texts that a memory of that user holds. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class CompactorParts:
    """`reader` loads the trained reader when it is first needed. `redact` removes secrets; raises `NotRecordable`.

    `held` is asked only where a state grows larger than it aims at.
    `writer`: None where states always consist of sentences of the conversation.
    """

    states: CompactedStates
    reader: Callable[[], Awaitable[StatementReader]]
    tokens: Tokens
    sentences: Sentences
    kinds: Kinds
    held: Held
    plain: Plain
    redact: Callable[[str], str]
    writer: GroundedWriter | None = None


class Compactor:
    """One per process. `run` is the process's own task. `threshold_tokens`: of a history that is compacted at all."""

    def __init__(self, parts: CompactorParts, *, threshold_tokens: int, telemetry: Telemetry) -> None:
        self._parts = parts
        self._threshold_tokens = threshold_tokens
        self._outcomes = telemetry.metrics.compactions
        self._writings = telemetry.metrics.compaction_writings
        self._waiting: asyncio.Queue[ResentHistory] = asyncio.Queue(WAITING_MAX)

    def prepare(self, history: ResentHistory) -> None:
        """Prepare the state that this history is due, if any, for the next request. Never waits, never raises."""
        characters = sum(len(message.content) for message in history.conversation.messages)
        if self._threshold_tokens < characters <= CHARACTERS_MAX:
            with suppress(asyncio.QueueFull):
                self._waiting.put_nowait(history)

    async def run(self, error_boundary: ErrorBoundary) -> None:
        """Prepare one history after the other. Ends only by cancellation."""
        while True:
            await error_boundary(self.compact(await self._waiting.get()))

    async def compact(self, history: ResentHistory) -> None:
        """Make the state that this history is due, and store it.

        Dated by the request, so that forgetting also reaches what is made of a state that was found before it.
        """
        outcome = "failed"
        try:
            outcome = await self._make(history)
        except NotRecordable:
            outcome = "refused"
        except Unavailable:
            pass
        finally:
            self._outcomes.labels(outcome).inc()

    async def _make(self, history: ResentHistory) -> str:
        last, state = _known(history)
        due = due_cuts(
            history.conversation,
            clean=history.clean_cuts(),
            last=last,
            threshold_tokens=self._threshold_tokens,
            tokens=self._parts.tokens,
        )
        cuts = await asyncio.to_thread(list, due)
        if not cuts:
            return "not_due"
        key = history.keys[cuts[-1].made_at]
        if await self._parts.states.find(history.scope.user_id, [key]) is not None:
            return "known"
        for cut in cuts:
            state = await self._next(history, state, cut, is_last=cut is cuts[-1])
        assert state is not None
        await self._parts.states.keep(history.scope.user_id, key, state, made_at=history.asked_at)
        return "made"

    async def _next(
        self, history: ResentHistory, state: CompactedState | None, cut: Cut, *, is_last: bool
    ) -> CompactedState:
        scope, conversation = history.scope, history.conversation
        begin = state.cut if state is not None else 0
        first = max(0, begin - CONTEXT_MESSAGES)
        messages = await asyncio.to_thread(self._redacted, conversation.messages[first : cut.at])
        exchanges = exchanges_of(messages[begin - first :])
        before = exchanges_of(messages[: begin - first])[-1:]
        reader = await self._parts.reader()
        turns = [_turn(scope, exchange) for exchange in exchanges]
        claims = await reader.read(turns, context=[_turn(scope, exchange) for exchange in before])
        kinds = await self._kinds(exchanges)
        new = await asyncio.to_thread(segment_of, exchanges, claims, kinds, self._parts.sentences)
        if is_last and self._waiting.empty():  # others should not wait for a model
            new = await self._written(new, exchanges, claims, kinds)
        made = await asyncio.to_thread(self._stated, conversation, state, cut, new)
        if needed_tokens(made.stretches, self._parts.tokens) <= STATE_TOKENS_MAX:
            return made
        needed = [item.text for item in needed_items(made.stretches)]
        held = await self._parts.held(scope.user_id, needed)
        return await asyncio.to_thread(self._stated, conversation, state, cut, new, held) if held else made

    async def _kinds(self, exchanges: Sequence[Exchange]) -> Mapping[str, SentenceKind]:
        said = [message for exchange in exchanges for message in users_messages(exchange)]
        split = await asyncio.to_thread(lambda: [one for message in said for one in self._parts.sentences(message)])
        texts = [text for sentence in split for text in (sentence, opening_of(sentence)) if text]
        return await self._parts.kinds(list(dict.fromkeys(texts)))

    async def _written(
        self,
        extracted: HistorySegment,
        exchanges: Sequence[Exchange],
        claims: Sequence[Claim],
        kinds: Mapping[str, SentenceKind],
    ) -> HistorySegment:
        """The segment as the writer writes it; as it is if there is no writer, or no text in time that may be used."""
        writer, plain = self._parts.writer, self._plain
        if writer is None:
            return extracted
        spoken = await asyncio.to_thread(spoken_sentences, exchanges, claims, kinds, self._parts.sentences)
        if not spoken:
            return extracted
        outcome = "failed"
        try:
            async with asyncio.timeout(WRITING_SECONDS_MAX):
                entries = await writer.write(
                    TASK,
                    [one.shown for one in spoken],
                    objections=lambda proposed: entry_faults(proposed, spoken, plain),
                )
            written = await asyncio.to_thread(written_segment, extracted, spoken, entries, plain)
            outcome = "refused" if written is None else "written"
            return written or extracted
        except (Unavailable, TimeoutError):
            return extracted
        finally:
            self._writings.labels(outcome).inc()

    def _plain(self, text: str) -> str:
        return self._parts.plain(self._parts.redact(text))

    def _redacted(self, messages: Sequence[Message]) -> list[Message]:
        """Whole messages, before they are split: no part of a secret is a sentence. Raises `NotRecordable`."""
        return [replace(message, content=self._parts.redact(message.content)) for message in messages]

    def _stated(
        self,
        conversation: Conversation,
        state: CompactedState | None,
        cut: Cut,
        new: HistorySegment,
        held: Collection[str] = (),
    ) -> CompactedState:
        parts = self._parts
        earlier = [without_need(one, held) for one in (state.stretches if state is not None else ())]
        begin, replaced = (state.cut, state.replaced_tokens) if state is not None else (0, 0)
        replaced += sum(message_sizes(conversation.messages[begin : cut.at], parts.tokens))
        return next_state(
            earlier,
            without_need(made_plain(new, self._plain), held),
            cut=cut.at,
            replaced_tokens=replaced,
            tokens=parts.tokens,
            tokens_max=STATE_TOKENS_MAX,
        )


def _known(history: ResentHistory) -> tuple[Cut, CompactedState | None]:
    """The state that was found, with its cut; the beginning if there is none."""
    if history.state is None:
        return NO_CUT, None
    key, state = history.state
    made_at = next((index for index, other in history.keys.items() if other == key), 0)
    return Cut(state.cut, made_at), state


def _turn(scope: Scope, exchange: Exchange) -> Turn:
    """The exchange as the reader reads it; its time is not known, and the state repeats only words."""
    said = tuple(Message(Role.USER, message.content) for message in exchange.said if message.role == Role.USER)
    return Turn("compaction", replace(scope, session_id=SESSION), 0.0, said, answer=exchange.answer)
