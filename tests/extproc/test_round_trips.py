"""How often a chat goes to the database: once before the search, once with what was said, once at the end."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hashing_embedder import HashingEmbedder
from postgres_server import ROLE, postgres_server
from product_parts import product_parts
from slow_relay import running_relay
from turn_logs import adapters

from extproc import observe, observed_stream, retrying_writes
from extproc._pb import external_processor_pb2 as pb
from extproc.observe import METADATA_NAMESPACE
from extproc.recorder import TurnRecorder
from extproc.server import Filter, filter_on
from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql import notes, receipts
from memory.adapters.sql.conversation_trees import SqlConversationTrees
from memory.adapters.sql.postgres_database import PostgresDatabase
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.statements import Statement
from memory.chat.completions import ChatRequest, read_chat_request
from memory.errors import Unavailable
from memory.model import Change, ChangeKind, Memory, SentConversation, Turn, TurnStatus
from memory.processes.background_parts import compactor_of
from memory.recall import review
from memory.settings.loader import from_process

ROUND_TRIPS_MAX = 3
WAITS_MAX = 20  # for the server, in those: once for each statement whose rows decide what is written
PATIENCE_SECONDS = 60.0  # only stops what hangs
NOW = 1_750_000_000.0
KAYAK = "My kayak is stored at the boathouse in Dorset"
WHERE = {"role": "user", "content": "Where is my kayak stored?"}
EARLIER = {"role": "user", "content": "Do I own a kayak?"}
ANSWER = {"role": "assistant", "content": "At the boathouse."}
LATER = {"role": "user", "content": "And what colour is my kayak?"}
THANKS = {"role": "user", "content": "Thank you very much!"}


@dataclass
class RoundTrips:
    """`trips`: transactions, and reads outside one. `statements`: by name. `read`: requests, by the observer."""

    trips: list[str] = field(default_factory=list)
    statements: Counter[str] = field(default_factory=Counter)
    read: list[bytes] = field(default_factory=list)

    def clear(self) -> None:
        for counts in (self.trips, self.statements, self.read):
            counts.clear()


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> RoundTrips:
    found = RoundTrips()

    def counting(kind: type[Any], name: str) -> None:
        plain = getattr(kind, name)

        def counts(self: object, *values: Any) -> Any:
            found.trips.append(name)
            return plain(self, *values)

        monkeypatch.setattr(kind, name, counts)

    for kind in (SqliteDatabase, PostgresDatabase):
        for name in ("read", "read_now", "_commit"):
            counting(kind, name)
    execute = Statement.__call__

    def executed(self: Statement, connection: Any, /, **values: Any) -> Any:
        found.statements[self.name] += 1
        return execute(self, connection, **values)

    def reads(body: bytes, *rules: Any) -> ChatRequest:
        found.read.append(body)
        return read_chat_request(body, *rules)

    monkeypatch.setattr(Statement, "__call__", executed)
    monkeypatch.setattr(observe, "read_chat_request", reads)
    return found


class Stream:
    """Envoy's side of one stream: what the filter wrote, and the metadata by which Envoy says which role it has."""

    def __init__(self, role: str) -> None:
        self._role = role
        self.written: list[pb.ProcessingResponse] = []

    def invocation_metadata(self) -> Sequence[tuple[str, str]]:
        return [("x-role", self._role)]

    async def write(self, response: pb.ProcessingResponse) -> None:
        self.written.append(response)


def headers(**named: str) -> pb.HttpHeaders:
    found = pb.HttpHeaders()
    for name, value in named.items():
        found.headers.headers.add(key=name.replace("__", ":").replace("_", "-"), raw_value=value.encode())
    return found


def asked(messages: Sequence[Mapping[str, str]], user: str) -> list[pb.ProcessingRequest]:
    body: dict[str, Any] = {"model": "m", "messages": messages}
    if user:
        body["memory_context"] = {"user_id": user}
    return [
        pb.ProcessingRequest(
            request_headers=headers(__method="POST", __path="/v1/chat/completions", x_request_id=json.dumps(messages))
        ),
        pb.ProcessingRequest(request_body=pb.HttpBody(body=json.dumps(body).encode(), end_of_stream=True)),
    ]


async def chat(filter_: Filter, messages: Sequence[Mapping[str, str]], user: str) -> Mapping[str, str]:
    """One chat as Envoy shows it to both roles. Returns the metadata that memory left."""

    async def each(requests: Sequence[pb.ProcessingRequest]) -> AsyncIterator[pb.ProcessingRequest]:
        for one in requests:
            yield one

    has_asked: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    async def observed() -> AsyncIterator[pb.ProcessingRequest]:
        for one in asked(messages, user):
            yield one
        left = await has_asked
        reply = pb.ProcessingRequest(response_headers=headers(__status="200", content_type="application/json"))
        reply.metadata_context.filter_metadata[METADATA_NAMESPACE].update(left)
        yield reply
        said = {"choices": [{"message": ANSWER, "finish_reason": "stop"}]}
        yield pb.ProcessingRequest(response_body=pb.HttpBody(body=json.dumps(said).encode(), end_of_stream=True))

    async with asyncio.TaskGroup() as streams:
        streams.create_task(filter_.process(observed(), Stream("observe")))  # type: ignore[arg-type]
        injecting = Stream("inject")
        await filter_.process(each(asked(messages, user)), injecting)  # type: ignore[arg-type]
        struct = injecting.written[-1].dynamic_metadata
        left = dict(struct[METADATA_NAMESPACE]) if METADATA_NAMESPACE in struct else {}
        has_asked.set_result({name: str(value) for name, value in left.items()})
    return has_asked.result()


@dataclass
class Product:
    filter_: Filter
    recorder: TurnRecorder

    async def chat(self, messages: Sequence[Mapping[str, str]], user: str) -> Mapping[str, str]:
        """Returns once the turn has ended."""
        left = await chat(self.filter_, messages, user)
        while self.recorder._pending._count:
            await asyncio.sleep(0.001)
        return left

    async def only_turn(self) -> Turn:
        """Of ann's; it has ended as it should."""
        [turn] = [turn async for turn in self.recorder._turn_log.turns("ann")]  # type: ignore[attr-defined]
        assert (turn.status, turn.answer) == (TurnStatus.CLOSED, ANSWER["content"])
        return turn


@asynccontextmanager
async def opened(folder: Path, adapter: str, *, port: int = 0) -> AsyncIterator[Product]:
    """A filter on real parts, but for the embedder and the store. `port`: a relay's to the server."""
    url = ""
    if adapter == "postgres":
        postgres_server().empty()
        url = f"postgresql://{ROLE}@127.0.0.1:{port or postgres_server().port}/postgres"
    settings = from_process(None, {})
    patient = msgspec.structs.replace(settings.memory, deadline_ms=PATIENCE_SECONDS * 1000)
    settings = msgspec.structs.replace(settings, database_url=url, memory=patient)
    store, embedder = InMemoryStore(), HashingEmbedder(dimension=384)
    vectors = await embedder.embed([KAYAK], is_urgent=False)
    await store.apply("ann", [Change(ChangeKind.CREATE, Memory("m1", "ann", KAYAK, NOW, NOW, NOW))], vectors)
    async with product_parts(folder, store, embedder, clock=lambda: NOW, settings=settings) as parts:
        filter_, recorder = filter_on(parts, parts.template_compatibility(), compactor_of(parts))
        async with recorder:
            await parts.corpora.corpus("ann", waits=True)
            yield Product(filter_, recorder)


KINDS = {
    "no identity": ([WHERE], "", ()),
    "skipped": ([THANKS], "ann", ("turns_queue.insert_turn", "turn_log.finish_turn", "receipts.insert_receipt")),
    "searched": ([WHERE], "ann", ("notes.insert_note", "turn_log.finish_turn", "receipts.insert_receipt")),
    "later": ([WHERE, ANSWER, LATER], "ann", ("turns_queue.insert_turn", "receipts.insert_receipt")),
}


@pytest.fixture(autouse=True)
def _nothing_happens_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes along with another write is not written by itself."""
    monkeypatch.setattr(review, "READ_SECONDS_MAX", PATIENCE_SECONDS)
    for module in (receipts, notes):
        monkeypatch.setattr(module, "IN_PASSING_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(retrying_writes, "BEAT_SECONDS", PATIENCE_SECONDS)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adapter", adapters())
async def test_a_chat_is_three_trips_at_most(tmp_path: Path, adapter: str, kind: str, counted: RoundTrips) -> None:
    messages, user, written = KINDS[kind]
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, adapter) as product:
        await product.chat([WHERE if kind == "later" else EARLIER], "ann")
        counted.clear()
        left = await product.chat(messages, user)
        trips, statements = list(counted.trips), dict(counted.statements)
        assert product.recorder.unread_bytes == 0
    assert left.get("status") == {"skipped": "skipped", "no identity": None}.get(kind, "used")
    assert len(trips) <= (ROUND_TRIPS_MAX if user else 0), trips
    assert sum("read" in trip for trip in trips) <= 1
    assert {name: statements.get(name) for name in written} == dict.fromkeys(written, 1)
    assert ("turn" in left, len(counted.read)) == ((True, 0) if user else (False, 1)), "inject opens it and reads alone"


@pytest.mark.full("a PostgreSQL server is started")
@pytest.mark.parametrize("kind", KINDS)
async def test_what_need_not_be_looked_at_goes_to_the_server_together(tmp_path: Path, kind: str) -> None:
    messages, user, _ = KINDS[kind]
    with running_relay(postgres_server().port) as relay:
        async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, "postgres", port=relay.port) as product:
            await product.chat([WHERE if kind == "later" else EARLIER], "ann")
            before = relay.turns_taken
            await product.chat(messages, user)
            assert (relay.turns_taken - before) // 2 <= (WAITS_MAX if user else 0)


async def test_a_request_beyond_what_may_wait_for_replies_is_read_at_once_and_its_turn_is_one(
    tmp_path: Path, counted: RoundTrips, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observed_stream, "UNREAD_BYTES_MAX", 0)
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, "sqlite") as product:
        left = await product.chat([WHERE], "ann")
        await product.only_turn()
        assert product.recorder.unread_bytes == 0
    assert ("turn" in left, len(counted.read)) == (True, 1)


@pytest.mark.parametrize("is_down", [False, True])
async def test_a_turn_that_is_not_in_the_log_in_time_is_opened_by_the_observer_and_is_one(
    tmp_path: Path, counted: RoundTrips, monkeypatch: pytest.MonkeyPatch, *, is_down: bool
) -> None:
    """The log is late for inject, or down for it."""
    tried: list[str] = []
    is_tried_again, open_known = asyncio.Event(), SqlConversationTrees.open_known

    async def late(self: SqlConversationTrees, turn: Turn, sent: SentConversation) -> str | None:
        tried.append(turn.id)
        if len(tried) > 1:
            is_tried_again.set()
        elif is_down:
            raise Unavailable("turn_log", "down")
        await is_tried_again.wait()
        return await open_known(self, turn, sent)

    monkeypatch.setattr(SqlConversationTrees, "open_known", late)
    async with asyncio.timeout(PATIENCE_SECONDS), opened(tmp_path, "sqlite") as product:
        product.recorder._policy = replace(product.recorder._policy, early_seconds_max=0.0)
        left = await product.chat([WHERE], "ann")
        turn = await product.only_turn()
    assert (left["status"], "turn" in left, len(counted.read)) == ("used", False, 1)
    assert tried == [turn.id] * 2
