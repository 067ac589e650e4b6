"""The product in a sandbox: recorded sessions pass through the turn log and the worker, as chats do, and are learnt.

The code under evaluation is the production code. A request is parsed as in the observing filter, secrets are redacted,
the turn is opened and finished in the log, and the worker does what is due: with the trained reader after each turn,
with a model when the session is idle, or earlier if the user's words require it. Only the clock is simulated: it is set
by the records. Nothing is extracted, consolidated or ranked here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from memory.chat.completions import read_chat_request
from memory.errors import MemproxyError
from memory.evaluation.records import seconds
from memory.learn.worker import Worker, WorkerSettings
from memory.model import Memory, MemoryStatus, Message, RecallStatus, RequestOptions, Role, Scope, Turn, TurnStatus
from memory.ports import MemoryFilter, MemoryStore, TurnLog
from memory.recall.pipeline import RecallPipeline
from memory.service.library import PLAIN

TURN_SECONDS = 1.0  # between two turns of a session, whose times are not in the records
MEMORIES_MAX = 10_000  # of one record; more than any has
OUTAGE_RETRIES = 2  # then the evaluation ends: the simulated clock cannot wait for a part
NOTE_ATTEMPTS = 3  # recall has a deadline, which a busy machine may miss

Data: TypeAlias = Mapping[str, Any]


class LearningFailed(MemproxyError):
    """A window or a question failed after its last attempt: its record must not be scored."""


@dataclass(slots=True)
class SettableClock:
    """Returns the time it was set to (Unix seconds)."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def impatient(settings: WorkerSettings) -> WorkerSettings:
    """The settings without waiting for the end of outages."""
    patience = OUTAGE_RETRIES * settings.retry_seconds_max
    return replace(settings, outage_seconds_max=patience, model_outage_seconds_max=patience)


@dataclass(frozen=True, slots=True)
class Learnt:
    """One user's stored memories including superseded ones, oldest first, and the turns in the log."""

    user_id: str
    memories: tuple[Memory, ...]
    turns: tuple[Turn, ...]

    @property
    def active(self) -> list[Memory]:
        return [memory for memory in self.memories if memory.status is MemoryStatus.ACTIVE]


def scope_of(user_id: str, record_id: str, session: int) -> Scope:
    """The scope of a record's session, counted from 0 in the order of learning."""
    return Scope(user_id, session_id=f"{record_id}/{session}")


def turn_id(scope: Scope, turn: int) -> str:
    """The id of a session's turn, counted from 0 in the order of `exchanges_of`."""
    return f"{scope.user_id}/{scope.session_id}/{turn}"


class Sandbox:
    """Learns one record after the other, each as a new user."""

    def __init__(
        self,
        *,
        turn_log: TurnLog,
        store: MemoryStore,
        worker: Worker,
        searcher: RecallPipeline,
        clock: SettableClock,
        redact: Callable[[str], str],
    ) -> None:
        """`worker`: its settings were made `impatient`; `clock`: shared by all parts; `redact`: as in recording."""
        self._turn_log = turn_log
        self._store = store
        self._worker = worker
        self._searcher = searcher
        self._clock = clock
        self._redact = redact
        self._users = count(1)

    async def learn(self, record: Data) -> Learnt:
        """Learn the sessions of the record, in order, for a new user. Raises `LearningFailed`, `Unavailable`."""
        user_id = f"user-{next(self._users)}"
        self._clock.now = seconds(record["sessions"][0]["at"])  # nothing of the previous record is in progress any more
        for number, session in enumerate(record["sessions"]):
            await self._talk(scope_of(user_id, record["id"], number), session)
            await self._fall_silent(user_id)
        records = await self._store.load(MemoryFilter(user_id, status=None), limit=MEMORIES_MAX)
        turns = [turn async for turn in self._turn_log.turns(user_id)]
        return Learnt(user_id, tuple(found.memory for found in reversed(records)), tuple(turns))

    async def search(self, learnt: Learnt, question: str, at: float, options: RequestOptions = PLAIN) -> list[Memory]:
        """What a new chat of that user gets for a question at that time (Unix seconds), best first.

        With `options`: what an API search gets.
        """
        self._clock.now = at
        found = await self._searcher.search(Scope(learnt.user_id), query=question, history=(), options=options)
        return [candidate.memory for candidate in found]

    async def note(self, learnt: Learnt, question: str, at: float) -> str:
        """The note for a new chat of that user with the question at that time; "" for none.

        Raises `LearningFailed` if recall missed its deadline, or a part was down, at every attempt.
        """
        # Loads the memories: the note must not depend on the duration of loading.
        await self.search(learnt, question, at)
        request = read_chat_request(json.dumps({"messages": [{"role": Role.USER, "content": question}]}).encode())
        for _ in range(NOTE_ATTEMPTS):
            outcome = await self._searcher.recall(Scope(learnt.user_id), request)
            if outcome.status is not RecallStatus.UNAVAILABLE:
                return "\n".join(note.text for note in outcome.notes)
        raise LearningFailed(f"a question got no answer from memory {NOTE_ATTEMPTS} times: {outcome.reason}")

    async def _talk(self, scope: Scope, session: Data) -> None:
        began = seconds(session["at"])
        for number, (said, answer) in enumerate(exchanges_of(session)):
            at = began + number * TURN_SECONDS
            self._clock.now = max(self._clock.now, at)
            turn = Turn(
                id=turn_id(scope, number),
                scope=scope,
                at=at,
                messages=tuple(Message(m.role, self._redact(m.content), m.is_tool_traffic) for m in said),
            )
            await self._turn_log.open(turn)
            await self._turn_log.finish(turn.id, status=TurnStatus.CLOSED, answer=self._redact(answer), answered_at=at)
            await self._worker.work_off()

    async def _fall_silent(self, user_id: str) -> None:
        """Advance the clock until nothing of the user waits any more."""
        self._clock.now += self._worker.settings.due.idle_seconds
        rounds = self._worker.settings.attempts_max + OUTAGE_RETRIES
        for _ in range(rounds):
            await self._worker.work_off()
            backlog = await self._turn_log.backlog(user_id, opened_before=math.inf)
            if backlog.failed:
                (letter, *_) = await self._turn_log.dead_letters(limit=1)
                raise LearningFailed(f"a window could not be learnt: {letter.reason}")
            if not backlog.pending:
                return
            self._clock.now += self._worker.settings.retry_seconds_max
        raise LearningFailed(f"a window was still not learnt after {rounds} rounds")


def exchanges_of(session: Data) -> Iterator[tuple[tuple[Message, ...], str]]:
    """The user's new messages in each request of the session, and the reply: one turn each.

    A request has all messages before a reply. One with tool results only adds no new message.
    """
    messages = session["messages"]
    replies = [place for place, message in enumerate(messages) if message["role"] == Role.ASSISTANT]
    if messages and messages[-1]["role"] != Role.ASSISTANT:
        replies.append(len(messages))  # the last request has no reply
    for place in filter(None, replies):  # nothing was asked before an answer that opens the session
        conversation = read_chat_request(json.dumps({"messages": messages[:place]}).encode()).conversation
        said = conversation.new_user_messages() if conversation is not None else ()
        said = tuple(message for message in said if message.content.strip())
        if said:
            yield said, (messages[place]["content"] or "") if place < len(messages) else ""
