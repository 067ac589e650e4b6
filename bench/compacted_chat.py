"""The product's recall and compaction in one process, without a server: a long chat, request by request."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec
from long_chats import TURNS, LongChat
from prefix_cache import BLOCK_TOKENS, NOW, PrefixCache, answered, count, rendered
from prometheus_client import CollectorRegistry

from extproc.inject import Recalled, finish_of
from memory.adapters.in_memory import InMemoryStore
from memory.chat.completions import read_chat_request
from memory.evaluation.sandbox import SettableClock, impatient
from memory.learn.readers import Readers
from memory.learn.worker import Worker
from memory.model import Message, RecallStatus, Role, Scope, Turn, TurnStatus
from memory.ports import Embedder, ResentHistory
from memory.processes.background_parts import compactor_of
from memory.processes.composition import Parts, open_parts_on
from memory.processes.from_settings import vector_origin, worker_settings
from memory.processes.kept_state import Process
from memory.processes.reader_parts import ready_reader
from memory.processes.working_set_parts import without_snapshots
from memory.recall.pipeline import RecallOutcome, RecallPipeline
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.sessions.compaction.compactor import Compactor
from memory.settings import Settings

TURN_SECONDS = 60.0
GOING_ON = (("Thanks. What should I do next?", "Take the smallest step first."), ("And after that?", ""))
DEADLINE_MS = 400  # counted, not timed: the longest that the settings allow


@dataclass
class LongChatRig:
    """One user's product, with a clock that the chat sets."""

    parts: Parts
    recall: RecallPipeline
    compactor: Compactor
    worker: Worker
    clock: SettableClock
    prepared: list[ResentHistory]  # by the last requests, for their next states

    async def learn(self, user: str, number: int, said: str, answer: str) -> None:
        """Record and learn one turn, as the observer and the worker do."""
        self.clock.now = NOW + number * TURN_SECONDS
        turn = Turn(f"{user}-{number}", Scope(user, session_id="s"), self.clock.now, (Message(Role.USER, said),))
        await self.parts.state.turn_log.open(turn)
        await self.parts.state.turn_log.finish(
            turn.id, status=TurnStatus.CLOSED, answer=answer, answered_at=self.clock.now
        )
        await self.worker.work_off()


@asynccontextmanager
async def long_chat_rig(settings: Settings, embedder: Embedder) -> AsyncIterator[LongChatRig]:
    clock = SettableClock(NOW)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="memproxy-"))
        memory = msgspec.structs.replace(without_snapshots(settings.memory), deadline_ms=DEADLINE_MS)
        here = msgspec.structs.replace(settings, data_dir=folder, memory=memory)
        process = Process(here, Telemetry(clock, Metrics(CollectorRegistry())))
        store = InMemoryStore(dimension=memory.milvus.dimension)
        parts = await open_parts_on(process, stack, store=store, embedder=embedder, origin=vector_origin(here))
        await parts.training.run()
        readers = Readers(ready_reader(settings))
        worker = parts.worker(readers, impatient(worker_settings(here)))
        prepared: list[ResentHistory] = []
        yield LongChatRig(parts, parts.recall(prepared.append), compactor_of(parts), worker, clock, prepared)


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """One request as it went upstream."""

    messages: list[dict[str, Any]]
    outcome: RecallOutcome

    @property
    def tokens(self) -> int:
        """Of the whole prompt, as ChatML renders it."""
        return len(rendered(self.messages, ()))

    def text(self) -> str:
        """All but the question."""
        return "\n".join(str(message["content"]) for message in self.messages[:-1])


@dataclass
class CompactedChat:
    """One client's conversation, which asks for compaction."""

    rig: LongChatRig
    user: str
    wants: bool = True
    messages: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, question: str) -> SentPrompt:
        """What goes upstream for the question, after the messages so far; nothing is prepared."""
        body = {"model": "m", "messages": [*self.messages, {"role": "user", "content": question}]}
        request = read_chat_request(json.dumps({**body, "memory_config": {"compact": self.wants}}).encode())
        for _ in range(20):
            outcome = await self.rig.recall.recall(Scope(self.user, session_id="s"), request)
            if outcome.status is not RecallStatus.UNAVAILABLE:
                break
        recalled = Recalled(outcome)
        body_sent = finish_of(request, recalled).body or request.body
        return SentPrompt(json.loads(body_sent)["messages"], outcome)

    async def turn(self, question: str, answer: str) -> SentPrompt:
        """A question and its answer; the next state is prepared."""
        self.rig.prepared.clear()
        sent = await self.send(question)
        for history in self.rig.prepared[-1:]:
            await self.rig.compactor.compact(history)
        self.messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return sent


@dataclass(frozen=True, slots=True)
class LongChatFigures:
    """`missing`: questions of which the prompt does not hold all. `ratio`: see `prefix_ratio`."""

    tokens_of_questions: Sequence[int]
    tokens_last_turns: Sequence[int]
    full_tokens: int
    planted: int
    in_state: int
    missing: Sequence[str]
    ratio: float
    moves: int
    compacted_turns: int


async def measured(rig: LongChatRig, chat: LongChat, *, last_turns: int = 50) -> LongChatFigures:
    """Go through the chat, then ask for each thing that was planted, in a branch of its own."""
    client, cache = CompactedChat(rig, chat.name), PrefixCache()
    client.messages = chat.messages()[:1]
    hits = possible = moves = 0
    sizes: list[int] = []
    end_before = 0
    for number, (question, answer) in enumerate(chat.turns()):
        sent = await client.turn(question, answer)
        prompt = rendered(sent.messages, ())
        if number >= TURNS - last_turns:
            new = len(rendered(sent.messages, ())) - len(rendered(sent.messages[:-1], ()))
            hits += len(cache.cached(prompt)) // BLOCK_TOKENS
            possible += (len(prompt) - new) // BLOCK_TOKENS
            sizes.append(len(prompt))
            end = sent.outcome.compacted.end if sent.outcome.compacted else 0
            moves += end != end_before
        end_before = sent.outcome.compacted.end if sent.outcome.compacted else 0
        cache.add([*prompt, *answered(answer)])
        await rig.learn(chat.name, number, question, answer)
    found = await _asked(client, chat)
    return LongChatFigures(
        tokens_of_questions=found["tokens"],
        tokens_last_turns=sizes,
        full_tokens=len(rendered(client.messages, ())),
        planted=len(chat.planted),
        in_state=found["in_state"],
        missing=found["missing"],
        ratio=round(hits / possible, 4),
        moves=moves,
        compacted_turns=last_turns,
    )


@dataclass(frozen=True, slots=True)
class PlantedFigures:
    """Of the prompts of a request: what of the planted is missing, and their tokens. `is_stable`: sent again, it is
    the same bytes.
    """

    missing: Sequence[str]
    tokens: int
    state_tokens: int
    is_stable: bool
    state: str


async def sent_whole(rig: LongChatRig, chat: LongChat) -> PlantedFigures:
    """Nothing was recorded: a client sends the whole chat with one request, and then goes on."""
    client = CompactedChat(rig, f"{chat.name}-whole", messages=chat.messages())
    await client.turn(*GOING_ON[0])
    return await _planted(client, chat)


async def recorded_live(rig: LongChatRig, chat: LongChat) -> PlantedFigures:
    """Each turn is sent, answered and learnt; then the client goes on."""
    client = CompactedChat(rig, f"{chat.name}-live", messages=chat.messages()[:1])
    for number, (question, answer) in enumerate([*chat.turns(), GOING_ON[0]]):
        await client.turn(question, answer)
        await rig.learn(client.user, number, question, answer)
    return await _planted(client, chat)


async def _planted(client: CompactedChat, chat: LongChat) -> PlantedFigures:
    """What is planted has to stand in the prompt of a question that is about none of it."""
    sent, again = await client.send(GOING_ON[1][0]), await client.send(GOING_ON[1][0])
    text, state = sent.text(), sent.outcome.compacted.text if sent.outcome.compacted else ""
    missing = [one.said for one in chat.planted if not all(needle in text for needle in one.needles)]
    return PlantedFigures(missing, sent.tokens, count(state), sent.messages == again.messages, state)


async def _asked(client: CompactedChat, chat: LongChat) -> Mapping[str, Any]:
    tokens, missing, in_state = [], [], 0
    for one in chat.planted:
        sent = await client.send(one.question)
        tokens.append(sent.tokens)
        state = sent.outcome.compacted.text if sent.outcome.compacted else ""
        in_state += all(needle in state for needle in one.needles)
        if not all(needle in sent.text() for needle in one.needles):
            missing.append(one.question)
    return {"tokens": tokens, "missing": missing, "in_state": in_state}


__all__ = [
    "CompactedChat",
    "LongChatRig",
    "PlantedFigures",
    "count",
    "long_chat_rig",
    "measured",
    "recorded_live",
    "sent_whole",
]
