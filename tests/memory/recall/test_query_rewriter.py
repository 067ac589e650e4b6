"""A question rewritten by a model beside the plain search: used if it comes in time, and never waited for past it."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from chat_server import FakeModelServer, running_chat_server
from hashing_embedder import HashingEmbedder
from prometheus_client import CollectorRegistry

from memory.adapters.models.openai_chat import ChatServer, OpenAiChatModel
from memory.adapters.models.wordpiece import WordPieceTokens
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.model_capabilities import SqliteModelCapabilities
from memory.adapters.sqlite.notes import SqliteNoteBook
from memory.adapters.sqlite.usage_counts import SqliteUsageCounts
from memory.chat.completions import ChatRequest, read_chat_request
from memory.errors import Unavailable
from memory.model import Candidate, Memory, Message, RecallStatus, Receipt, Record, RequestOptions, Scope, Vector
from memory.ports import RequestTraces, ServerKnowledge
from memory.recall.pipeline import RECEIPT_PAUSE_SECONDS, RecallOutcome, RecallPipeline, RecallSettings
from memory.recall.query_rewriter import FAILURES_MAX, Rewriter, RewriteSettings
from memory.recall.ranking.corpus import Corpus
from memory.recall.retrieval import Expected, Retrieval
from memory.recall.rewrite_prompt import RewriteMode
from memory.recall.search_flow import SECOND_SEARCH_SECONDS, SearchParts
from memory.runtime.instruments import Instruments
from memory.runtime.metrics import Metrics

NOW = 1_750_000_000.0
DEADLINE_SECONDS = 0.4  # of these tests, on a busy machine; what is shown is the order of things, not their speed
MEMORIES = (
    "My kayak is stored at the boathouse in Dorset",
    "My violin teacher is Mrs. Okafor",
    "I prefer window seats on trains",
)
GOOD = json.dumps({"query": "Where is my kayak stored?"})


@dataclass
class Kept:
    """Receipts of this process."""

    receipts: list[Receipt] = field(default_factory=list)

    def keep(self, receipt: Receipt) -> None:
        self.receipts.append(receipt)

    async def get(self, user_id: str, receipt_id: str) -> Receipt | None:
        return next((r for r in self.receipts if r.id == receipt_id), None)

    async def erase(self, user_id: str, *, project_id: str = "") -> None:
        self.receipts.clear()


class TroubledEmbedder(HashingEmbedder):
    """Takes long for some texts (`slow`, in seconds), and fails for others (`broken`)."""

    def __init__(self) -> None:
        super().__init__(dimension=384)
        self.slow: dict[str, float] = {}
        self.broken: set[str] = set()

    async def embed(self, texts: Sequence[str], *, is_urgent: bool, as_query: bool = False) -> Vector:
        if self.broken.intersection(texts):
            raise Unavailable("embedder", "it fails for this one")
        await asyncio.sleep(sum(self.slow.get(text, 0.0) for text in texts))
        return await super().embed(texts, is_urgent=is_urgent)


@dataclass
class OneCorpus:
    """Everybody's working set is this one."""

    held: Corpus

    def searching(self) -> AbstractContextManager[None]:
        raise AssertionError("the corpus is there")

    def expect(self, user_id: str) -> Expected:
        return Expected()

    async def corpus(
        self, user_id: str, *, waits: bool = False, expected: object = None, seconds: float = 0.0
    ) -> Corpus | None:
        return self.held


@dataclass
class Chat:
    """A user's chats with recall in them."""

    recall_of: RecallPipeline
    embedder: TroubledEmbedder
    kept: Kept
    metrics: Metrics

    async def ask(self, *said: str, **config: object) -> RecallOutcome:
        outcome = await self.recall_of.recall(Scope("u"), request_of(*said, **config))
        await asyncio.sleep(1.5 * RECEIPT_PAUSE_SECONDS)  # its receipt is left when the request has gone on
        return outcome

    async def search(self, query: str, history: Sequence[Message]) -> list[Candidate]:
        """As the API does it."""
        return await self.recall_of.search(Scope("u"), query=query, history=history, options=RequestOptions())

    @property
    def receipt(self) -> Receipt:
        return self.kept.receipts[-1]


def request_of(*said: str, **config: object) -> ChatRequest:
    """User and assistant by turns, the user last. `config`: its `memory_config`."""
    roles = ["user" if (len(said) - 1 - i) % 2 == 0 else "assistant" for i in range(len(said))]
    messages = [{"role": role, "content": text} for role, text in zip(roles, said, strict=True)]
    return read_chat_request(json.dumps({"model": "m", "messages": messages, "memory_config": config}).encode())


@asynccontextmanager
async def chatting(
    folder: Path,
    url: str | None,
    mode: RewriteMode = RewriteMode.VAGUE,
    *,
    hyde: bool = False,
    deadline_seconds: float = DEADLINE_SECONDS,
    model_seconds: float = 30.0,
) -> AsyncIterator[Chat]:
    embedder, kept, metrics = TroubledEmbedder(), Kept(), Metrics(CollectorRegistry())
    vectors = await embedder.embed(MEMORIES, is_urgent=False)
    corpus = Corpus(
        Record(Memory(f"m{i}", "u", text, NOW, NOW, NOW), np.asarray(vector))
        for i, (text, vector) in enumerate(zip(MEMORIES, vectors, strict=True))
    )
    embedder.texts.clear()
    ids = (f"r{number}" for number in itertools.count())
    async with (
        SqliteDatabase(folder / "turns.sqlite") as database,
        OpenAiChatModel(ChatServer(url or "http://127.0.0.1:1", "m")) as model,
    ):
        rewriter = Rewriter(model, RewriteSettings(mode, hyde=hyde, seconds_max=model_seconds))
        search = SearchParts(
            embedder=embedder,
            classifier=lambda: None,
            retrieval=Retrieval(corpora=OneCorpus(corpus), store=None),  # type: ignore[arg-type] - all is loaded
            tokens=WordPieceTokens(),
            rewriter=rewriter if url is not None else None,
        )
        recall = RecallPipeline(
            search=search,
            traces=RequestTraces(SqliteNoteBook(database), kept, SqliteUsageCounts(database)),
            server=ServerKnowledge(SqliteModelCapabilities(database, clock=lambda: NOW)),
            instruments=Instruments(lambda: NOW, metrics),
            new_id=lambda: next(ids),
            settings=RecallSettings(deadline_seconds=deadline_seconds),
        )
        await recall.recall(Scope("u"), request_of("Where do I sit on trains?"))  # what is loaded once is loaded
        kept.receipts.clear()
        embedder.texts.clear()
        yield Chat(recall, embedder, kept, metrics)


@pytest.fixture
async def server() -> AsyncIterator[FakeModelServer]:
    async with running_chat_server() as running:
        running.content = GOOD
        yield running


@pytest.fixture
async def chat(tmp_path: Path, server: FakeModelServer) -> AsyncIterator[Chat]:
    async with chatting(tmp_path, server.url) as opened:
        yield opened


# The subject stands further back than the plain query looks.
VAGUE = (
    *("My kayak needs paint.", "Which colour?", "Green is nice on summer evenings.", "Lovely."),
    *("Let us speak of bread recipes instead.", "Rye?", "Rye bread with caraway seeds.", "Good.", "Where is mine?"),
)
# Here it stands in the message before, so the plain query finds it.
NEAR = ("I want to paint my kayak.", "Which colour?", "Where is it stored?")


def notes_of(outcome: RecallOutcome) -> str:
    return "\n".join(note.text for note in outcome.notes)


async def test_a_rewrite_in_time_finds_what_the_vague_question_does_not(
    chat: Chat, server: FakeModelServer, tmp_path: Path
) -> None:
    assert "boathouse" in notes_of(await chat.ask(*VAGUE))
    assert len(server.asked) == 1
    assert (tmp_path / "plain").mkdir() is None
    async with chatting(tmp_path / "plain", None) as plain:
        assert "boathouse" not in notes_of(await plain.ask(*VAGUE))


async def test_the_request_does_not_wait_for_its_receipt(chat: Chat) -> None:
    await asyncio.sleep(1.5 * RECEIPT_PAUSE_SECONDS)  # those of the fixture's own questions are left
    before = list(chat.kept.receipts)
    outcome = await chat.recall_of.recall(Scope("u"), request_of(*VAGUE))
    await asyncio.sleep(0)  # in which the request leaves
    assert chat.kept.receipts == before
    await asyncio.sleep(1.5 * RECEIPT_PAUSE_SECONDS)
    assert chat.receipt.id == outcome.receipt_id


async def test_the_receipt_says_which_question_was_used(chat: Chat) -> None:
    outcome = await chat.ask(*VAGUE)
    assert chat.receipt.id == outcome.receipt_id
    assert chat.receipt.query.endswith("Where is mine?")
    assert chat.receipt.signals["rewrite"] == "used"
    assert chat.receipt.signals["rewritten"] == "Where is my kayak stored?"
    await chat.ask(*VAGUE, auto_store=False)
    assert chat.receipt.signals["rewrite"] == "used"
    assert chat.receipt.signals.keys().isdisjoint({"rewritten", "hypothesis"})
    assert {"rewrite", "search_again"} <= set(chat.receipt.timings_ms)


async def test_with_hyde_the_expected_memory_is_searched_for_too(tmp_path: Path, server: FakeModelServer) -> None:
    server.content = json.dumps({"query": "Where is my kayak?", "memory": "My kayak is stored somewhere."})
    async with chatting(tmp_path, server.url, hyde=True) as chat:
        assert "boathouse" in notes_of(await chat.ask(*VAGUE))
    assert chat.embedder.texts[-1] == "Where is my kayak? My kayak is stored somewhere."


async def test_a_late_rewrite_is_ignored_and_the_request_leaves_on_time_with_what_was_found(
    chat: Chat, server: FakeModelServer
) -> None:
    server.seconds = 30.0
    outcome = await chat.ask(*NEAR)
    assert outcome.status is RecallStatus.USED
    assert "boathouse" in notes_of(outcome)
    assert chat.receipt.signals["rewrite"] == "late"
    assert chat.metrics.registry.get_sample_value("memproxy_recall_late_total") == 0
    async with asyncio.timeout(5):  # the model is told that nobody waits any more
        while not server.hung_up:
            await asyncio.sleep(0.005)


async def test_a_rewrite_that_cannot_be_embedded_in_time_leaves_what_was_found(
    chat: Chat, server: FakeModelServer
) -> None:
    chat.embedder.slow = {"Where is my kayak stored?": 30.0}
    outcome = await chat.ask(*NEAR)
    assert "boathouse" in notes_of(outcome)
    assert chat.receipt.signals["rewrite"] == "late"
    assert chat.metrics.registry.get_sample_value("memproxy_recall_late_total") == 0


async def test_where_a_late_rewrite_would_have_been_the_only_one_to_find_anything_the_plain_search_s_word_stands(
    chat: Chat, server: FakeModelServer
) -> None:
    chat.embedder.slow = {"Where is my kayak stored?": 30.0}
    outcome = await chat.ask(*VAGUE)
    assert (outcome.status, outcome.reason, outcome.notes) == (RecallStatus.EMPTY, "nothing_relevant", ())
    assert (chat.receipt.status, chat.receipt.signals["rewrite"]) == (RecallStatus.EMPTY, "late")
    assert chat.metrics.registry.get_sample_value("memproxy_recall_late_total") == 0


async def test_a_rewrite_whose_embedding_fails_is_unused(chat: Chat) -> None:
    chat.embedder.broken = {"Where is my kayak stored?"}
    assert "boathouse" in notes_of(await chat.ask(*NEAR))
    assert chat.receipt.signals["rewrite"] == "unused"


async def test_a_deadline_that_leaves_a_model_no_time_asks_none(tmp_path: Path, server: FakeModelServer) -> None:
    async with chatting(tmp_path, server.url, deadline_seconds=SECOND_SEARCH_SECONDS) as chat:
        for _ in range(10):  # 25 ms in all: on a busy machine they may end before anything is decided
            if (await chat.ask(*NEAR)).status is not RecallStatus.UNAVAILABLE:
                break
    assert server.asked == []
    assert chat.receipt.signals["rewrite"] == "no_time"


async def test_a_model_s_own_time_out_ends_the_wait_before_the_deadline_does(
    tmp_path: Path, server: FakeModelServer
) -> None:
    server.seconds = 30.0
    async with chatting(tmp_path, server.url, deadline_seconds=3.0, model_seconds=0.1) as chat:
        assert "boathouse" in notes_of(await chat.ask(*NEAR))
    assert chat.receipt.signals["rewrite"] == "late"


async def test_a_search_by_the_api_is_rewritten_as_a_chat_is(chat: Chat, server: FakeModelServer) -> None:
    history = request_of(*VAGUE).conversation.messages[:-1]  # type: ignore[union-attr] - it is one
    found = await chat.search(VAGUE[-1], history)
    assert [candidate.memory.content for candidate in found] == [MEMORIES[0]]
    assert len(server.asked) == 1
    server.status = 500
    assert await chat.search(VAGUE[-1], history) == []
    assert await chat.search("Where is my kayak stored?", ()) != []
    assert len(server.asked) == 2


@pytest.mark.parametrize("trouble", ["junk", "no rewrite", "500", "ten megabytes", "drips"])
async def test_a_model_in_trouble_leaves_the_plain_result(chat: Chat, server: FakeModelServer, trouble: str) -> None:
    match trouble:
        case "junk":
            server.body = b"<html>"
        case "no rewrite":
            server.content = json.dumps({"query": "I cannot help with that"})
        case "500":
            server.status = 500
        case "ten megabytes":
            server.body = b'{"choices": [{"message": {"content": "' + b"x" * (10 << 20) + b'"}}]}'
        case "drips":
            server.drips = True
    outcome = await chat.ask(*NEAR)
    assert "boathouse" in notes_of(outcome)
    assert len(chat.embedder.texts) == 1


async def test_a_model_that_is_down_leaves_the_plain_result(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with chatting(tmp_path, f"http://127.0.0.1:{port}") as chat:
        assert "boathouse" in notes_of(await chat.ask(*NEAR))


async def test_a_model_that_fails_time_and_again_is_left_alone(chat: Chat, server: FakeModelServer) -> None:
    server.status = 500
    for number in range(FAILURES_MAX + 3):
        await chat.ask(f"I want to paint my kayak number {number}.", "Yes?", "Where is it stored?")
    assert len(server.asked) == FAILURES_MAX
    assert "rewrite" not in chat.receipt.signals


async def test_only_so_many_questions_are_rewritten_at_a_time(tmp_path: Path, server: FakeModelServer) -> None:
    server.seconds = 0.5
    async with chatting(tmp_path, server.url, deadline_seconds=2.0) as chat, asyncio.TaskGroup() as group:
        for number in range(12):
            group.create_task(chat.ask(f"I want to paint my kayak number {number}.", "Yes?", "Where is it stored?"))
    assert len(server.asked) == 4


async def test_an_embedder_that_is_down_ends_the_wait_for_the_model_at_once(
    chat: Chat, server: FakeModelServer
) -> None:
    chat.embedder.is_down = True
    server.seconds = 30.0
    outcome = await chat.ask(*NEAR)
    assert (outcome.status, outcome.reason) == (RecallStatus.UNAVAILABLE, "embedder")


async def test_a_question_that_stands_on_its_own_asks_no_model(chat: Chat, server: FakeModelServer) -> None:
    await chat.ask("Hi", "Hello", "At which boathouse do I keep the kayak in Dorset?")
    assert server.asked == []
    assert len(chat.embedder.texts) == 1


async def test_where_all_are_to_be_rewritten_it_asks_for_those_too(tmp_path: Path, server: FakeModelServer) -> None:
    async with chatting(tmp_path, server.url, RewriteMode.ALWAYS) as chat:
        server.asked.clear()
        await chat.ask("Hi", "Hello", "At which boathouse do I keep the kayak in Dorset?")
    assert len(server.asked) == 1


async def test_without_a_model_nothing_is_asked_and_one_text_is_embedded(
    tmp_path: Path, server: FakeModelServer
) -> None:
    async with chatting(tmp_path, None) as chat:
        await chat.ask(*NEAR)
    assert server.asked == []
    assert len(chat.embedder.texts) == 1
    assert "rewrite" not in chat.receipt.signals
