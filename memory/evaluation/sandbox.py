"""The product in a sandbox: recorded sessions go through the turn log and the worker, as chats do, and are learnt.

What is measured is what runs. A request is read as the observing filter reads it, secrets are taken out, the turn is
opened and finished in the log, and the worker does what is due: with the trained reader after each turn, with a model
when the session has fallen silent, or earlier where the user's words want it. Only time is made up: the clock stands
at what the records say. Nothing here extracts, judges, consolidates or ranks by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol, TypeAlias

from memory.chat.completions import ChatRequest, read
from memory.errors import MemproxyError
from memory.evaluation.records import seconds
from memory.learn.worker import Worker, WorkerSettings
from memory.model import (
    Memory,
    MemoryStatus,
    Message,
    RecallStatus,
    RequestOptions,
    Role,
    Scope,
    Turn,
    TurnStatus,
)
from memory.ports import MemoryFilter, MemoryStore
from memory.recall.trace import RecallOutcome
from memory.service.library import PLAIN, LibraryTurns, Searcher

TURN_SECONDS = 1.0  # between two turns of a session, whose times the records do not tell
MEMORIES_MAX = 10_000  # of one record; more than any holds
OUTAGE_RETRIES = 2  # then what is away is taken for away: nobody would see when it is back
NOTE_ATTEMPTS = 3  # a chat's recall has a deadline, which a busy machine may miss

Data: TypeAlias = Mapping[str, Any]


class GivenUp(MemproxyError):
    """A window or a question was given up after its last attempt: what is left of its record must not be scored."""


@dataclass(slots=True)
class SettableClock:
    """Shows what it was set to (Unix seconds)."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def impatient(settings: WorkerSettings) -> WorkerSettings:
    """As the product is set, but for outages: they are not sat out."""
    patience = OUTAGE_RETRIES * settings.retry_seconds_max
    return replace(settings, outage_seconds_max=patience, model_outage_seconds_max=patience)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What is stored of one user, superseded rows included, oldest first, and the turns as the log holds them."""

    user_id: str
    memories: tuple[Memory, ...]
    turns: tuple[Turn, ...]

    @property
    def active(self) -> list[Memory]:
        return [memory for memory in self.memories if memory.status is MemoryStatus.ACTIVE]


class Answering(Searcher, Protocol):
    """What chats are served with, `memory.recall.pipeline.Recall`: a search, and a request's notes."""

    async def recall(self, scope: Scope, request: ChatRequest) -> RecallOutcome: ...


def scope_of(user_id: str, record_id: str, session: int) -> Scope:
    """Of a record's session, counted from 0 in the order of learning."""
    return Scope(user_id, session_id=f"{record_id}/{session}")


def turn_id(scope: Scope, turn: int) -> str:
    """Of a session's turn, counted from 0 as `exchanges_of` yields them."""
    return f"{scope.user_id}/{scope.session_id}/{turn}"


class Sandbox:
    """Learns one record after the other, each as a user of its own who starts with nothing."""

    def __init__(
        self,
        *,
        turn_log: LibraryTurns,
        store: MemoryStore,
        worker: Worker,
        searcher: Answering,
        clock: SettableClock,
        redact: Callable[[str], str],
    ) -> None:
        """The worker's settings were made `impatient`; `clock` is everybody's. `redact`: of recording."""
        self._turn_log = turn_log
        self._store = store
        self._worker = worker
        self._searcher = searcher
        self._clock = clock
        self._redact = redact
        self._users = count(1)

    async def learn(self, record: Data) -> Learnt:
        """The sessions of the record, in order, said by a new user. Raises `GivenUp`, `Unavailable`."""
        user_id = f"user-{next(self._users)}"
        self._clock.now = seconds(record["sessions"][0]["at"])  # nothing of the record before is under way any more
        for number, session in enumerate(record["sessions"]):
            await self._talk(scope_of(user_id, record["id"], number), session)
            await self._fall_silent(user_id)
        records = await self._store.load(MemoryFilter(user_id, status=None), limit=MEMORIES_MAX)
        turns = [turn async for turn in self._turn_log.turns(user_id)]
        return Learnt(user_id, tuple(found.memory for found in reversed(records)), tuple(turns))

    async def search(self, learnt: Learnt, question: str, at: float, options: RequestOptions = PLAIN) -> list[Memory]:
        """What a new chat of that user gets for a question asked at that time (Unix seconds), best first.

        With `options`: what a search through the API gets.
        """
        self._clock.now = at
        found = await self._searcher.search(Scope(learnt.user_id), query=question, history=(), options=options)
        return [candidate.memory for candidate in found]

    async def note(self, learnt: Learnt, question: str, at: float) -> str:
        """The note that goes along when that user opens a chat with the question at that time; "" for none.

        Raises `GivenUp` where recall missed its deadline, or a part was away, each time.
        """
        await self.search(learnt, question, at)  # loads the memories: the note must not depend on how long that takes
        request = read(json.dumps({"messages": [{"role": Role.USER, "content": question}]}).encode())
        for _ in range(NOTE_ATTEMPTS):
            outcome = await self._searcher.recall(Scope(learnt.user_id), request)
            if outcome.status is not RecallStatus.UNAVAILABLE:
                return "\n".join(note.text for note in outcome.notes)
        raise GivenUp(f"a question got no answer from memory {NOTE_ATTEMPTS} times: {outcome.reason}")

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
        """Let time go by until nothing of the user waits any more."""
        self._clock.now += self._worker.settings.due.idle_seconds
        rounds = self._worker.settings.attempts_max + OUTAGE_RETRIES
        for _ in range(rounds):
            await self._worker.work_off()
            backlog = await self._turn_log.backlog(user_id, opened_before=math.inf)
            if backlog.failed:
                (letter, *_) = await self._turn_log.dead_letters(limit=1)
                raise GivenUp(f"a window could not be learnt: {letter.reason}")
            if not backlog.pending:
                return
            self._clock.now += self._worker.settings.retry_seconds_max
        raise GivenUp(f"a window was still not learnt after {rounds} rounds")


def exchanges_of(session: Data) -> Iterator[tuple[tuple[Message, ...], str]]:
    """What the user says for the first time in each request of the session, and what was replied: one turn each.

    A request is all messages before a reply. One that only brings the results of tools says nothing new.
    """
    messages = session["messages"]
    replies = [place for place, message in enumerate(messages) if message["role"] == Role.ASSISTANT]
    if messages and messages[-1]["role"] != Role.ASSISTANT:
        replies.append(len(messages))  # nobody replied to the last one
    for place in replies:
        conversation = read(json.dumps({"messages": messages[:place]}).encode()).conversation if place else None
        said = conversation.new_user_messages() if conversation is not None else ()
        said = tuple(message for message in said if message.content.strip())
        if said:
            yield said, (messages[place]["content"] or "") if place < len(messages) else ""


__all__ = [
    "Answering",
    "Data",
    "GivenUp",
    "Learnt",
    "Sandbox",
    "SettableClock",
    "exchanges_of",
    "impatient",
    "scope_of",
    "turn_id",
]
