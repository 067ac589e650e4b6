"""Measures the effect of notes on a model server's prefix cache: the client's own blocks that are hit, over thirty
turns.

`python bench/prefix.py`. Counts blocks, with the product's recall and the packaged embedding model in one process,
without a server; the baseline is the same conversation without memory. `ratio` is the share of the
blocks hit there that are hit with notes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prometheus_client import CollectorRegistry
from report import Bar, Report, Sheet, bench_parser
from rich.progress import track

from memory.adapters.in_memory import InMemoryStore
from memory.adapters.sql.chat_states import SqlChatStates
from memory.adapters.sql.ledger import SqlUserLedger
from memory.adapters.sql.notes import SqlNoteBook
from memory.adapters.sql.profiles import SqlProfiles
from memory.adapters.sql.receipts import SqlReceipts
from memory.adapters.sql.sqlite_database import SqliteDatabase
from memory.adapters.sql.turn_log import SqlTurnLog
from memory.adapters.sql.upkeep import SqlUsageCounts
from memory.chat.completions import insert_notes, read_chat_request
from memory.model import Change, ChangeKind, Placement, RecallStatus, Scope
from memory.ports import Embedder, ResponseChains
from memory.processes.composition import new_id, open_embedder, signal_training
from memory.recall.pipeline import RecallOutcome, RecallParts, RecallPipeline
from memory.recall.project_access import ReadableProjects
from memory.recall.retrieval import Retrieval
from memory.recall.search_flow import SearchParts
from memory.recall.stages import RecallSettings
from memory.recall.working_set.working_sets import WorkingSets
from memory.runtime.metrics import Metrics
from memory.runtime.tracing import Telemetry
from memory.secrets.redaction import recordable
from memory.service.erasure import Erasure
from memory.service.profile_layout import pinned_line
from memory.settings import Settings
from memory.settings.loader import from_process

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))
from absent_stores import memory_bank, request_stores  # isort: skip
from prefix_cache import BLOCK_TOKENS, NOW, PrefixCache, answered, count, known_memories, rendered, thirty_exchanges  # isort: skip
from prefix_responses import ResponsesConversation  # isort: skip

TOOL_CALLS = 5
BARS = (
    Bar("ratio", at_least=0.95),
    Bar("notes", at_least=3),
    Bar("tokens of notes", at_most=2_000),
    Bar("requests with a memory before it is forgotten", at_least=1),
    Bar("requests with it afterwards", at_most=0),
    Bar("ratio of responses, items sent again", at_least=0.95),
    Bar("ratio of responses, in a chain", at_least=0.95),
    Bar("notes of responses", at_least=3),
    Bar("tokens of notes of responses", at_most=2_000),
    Bar("ratio once a forgotten memory's note has gone", at_least=0.95),
    Bar("calls of a tool loop with the same notes", at_least=TOOL_CALLS),
    Bar("new notes in a tool loop", at_most=0),
    Bar("notes of a tool loop", at_least=1),
)
USER = "ann"
OWN_LINES = ("Answer in short sentences", "I live in Leeds and cycle to work", "I am vegan and allergic to nuts")
PATIENT = RecallSettings(deadline_seconds=30.0)  # counted, not timed: a busy machine must not change what is found
VARIANTS: dict[str, Placement | None] = {
    "no memory": None,
    "before_last_user": Placement.BEFORE_LAST_USER,
    "system": Placement.SYSTEM,
}


@dataclass
class Product:
    """The request side in this process, with a profile and 150 memories of one user."""

    recall: RecallPipeline
    erasure: Erasure
    chains: ResponseChains


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it went upstream."""

    body: bytes
    outcome: RecallOutcome

    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.body)["messages"]
        return found

    def notes(self) -> list[str]:
        return [note.text for note in self.outcome.notes]


@dataclass
class Conversation:
    """One client's. `placement` None: memory is off. `requests` as they went out; `hits` the client's own blocks."""

    product: Product
    placement: Placement | None = Placement.BEFORE_LAST_USER
    messages: list[dict[str, Any]] = field(default_factory=lambda: [{"role": "system", "content": "You are helpful."}])
    cache: PrefixCache = field(default_factory=PrefixCache)
    requests: list[Request] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)

    async def send(self) -> Request:
        config: dict[str, object] = {"enabled": self.placement is not None}
        if self.placement is not None:
            config["placement"] = str(self.placement)
        request = read_chat_request(
            json.dumps({"model": "m", "messages": self.messages, "memory_config": config}).encode()
        )
        outcome = await self.product.recall.recall(Scope(USER), request)
        if outcome.status is RecallStatus.UNAVAILABLE:
            raise RuntimeError(f"recall did not work: {outcome.reason}")
        sent = Request(insert_notes(request, outcome.notes), outcome)
        self.requests.append(sent)
        return sent

    async def exchange(self, question: str, answer: str) -> None:
        self.messages.append({"role": "user", "content": question})
        sent = await self.send()
        prompt = rendered(sent.messages(), sent.notes())
        self.hits.append(sum(token.is_client_s for token in self.cache.cached(prompt)) // BLOCK_TOKENS)
        self.cache.add([*prompt, *answered(answer)])
        self.messages.append({"role": "assistant", "content": answer})

    async def exchanges(self, every: Sequence[tuple[str, str]]) -> None:
        for question, answer in every:
            await self.exchange(question, answer)

    def note_tokens(self) -> int:
        """Of the last prompt, as the template renders them; a conversation's last prompt holds all of its notes."""
        last = self.requests[-1]
        return sum(not token.is_client_s for token in rendered(last.messages(), last.notes()))


@asynccontextmanager
async def running_product(embedder: Embedder) -> AsyncIterator[Product]:
    settings, metrics, store = Settings(), Metrics(CollectorRegistry()), InMemoryStore()
    memories = known_memories()
    vectors = await embedder.embed([memory.content for memory in memories], is_urgent=False)
    await store.apply(USER, [Change(ChangeKind.CREATE, memory) for memory in memories], vectors)
    training = signal_training(settings, embedder)
    await training.run()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        database = await stack.enter_async_context(SqliteDatabase(folder / "turns.sqlite"))
        ledger, notes = SqlUserLedger(database, clock=clock), SqlNoteBook(database)
        receipts = SqlReceipts(database, clock=clock, redact=recordable)
        usage_counts = SqlUsageCounts(database)
        dimension = settings.memory.milvus.dimension
        sets = WorkingSets(store=store, ledger=ledger, dimension=dimension)
        corpora, profiles = await stack.enter_async_context(sets), SqlProfiles(database)
        own = [pinned_line(text, tokens=count) for text in OWN_LINES]
        await profiles.set_own(USER, "", pinned=own, now=NOW)
        turn_log = SqlTurnLog(database, clock=clock)
        states = SqlChatStates(database, notes, turn_log.chains, clock)
        stores = request_stores(notes, receipts, usage_counts, profiles, chat_states=states)
        projects = ReadableProjects(stores.projects)
        search = SearchParts(
            embedder=embedder,
            classifier=training.current,
            retrieval=Retrieval(corpora=corpora, store=store, projects=projects),
            tokens=count,
        )
        parts = RecallParts(search, stores, projects, turn_log.chains, NoWindows(), Telemetry(clock, metrics), new_id)
        recall = RecallPipeline(parts, PATIENT)
        memories = memory_bank(store, ledger, embedder)
        erasure = Erasure(memories=memories, turn_log=turn_log, stores=stores, clock=clock)
        yield Product(recall, erasure, turn_log.chains)


class NoWindows:
    """`ModelWindows` of a server that nobody asks: no note is bounded."""

    def glance(self, model: str) -> None:
        return None


def clock() -> float:
    return NOW


# The variants


async def thirty_turns(embedder: Embedder, placement: Placement | None) -> Conversation:
    async with running_product(embedder) as product:
        conversation = Conversation(product, placement)
        await conversation.exchanges(thirty_exchanges())
        return conversation


async def responses(embedder: Embedder) -> dict[str, dict[str, object]]:
    """The same turns through the Responses API, for both kinds of client and both places of a note."""
    found: dict[str, dict[str, object]] = {}
    for is_chained, name in ((False, "responses_resent"), (True, "responses_chained")):
        without = await _responded(embedder, None, is_chained=is_chained)
        for placement in (Placement.BEFORE_LAST_USER, Placement.SYSTEM):
            one = await _responded(embedder, placement, is_chained=is_chained)
            found[name if placement is not Placement.SYSTEM else f"{name}_system"] = {
                "blocks_hit": sum(one.hits),
                "ratio": ratio(one.hits, without.hits),
                "notes": len(one.notes),
                "note_tokens": one.note_tokens,
            }
    return found


async def _responded(embedder: Embedder, placement: Placement | None, *, is_chained: bool) -> ResponsesConversation:
    async with running_product(embedder) as product:
        conversation = ResponsesConversation(product.recall, product.chains, USER, is_chained, placement)
        await conversation.exchanges(thirty_exchanges())
        return conversation


async def forgetting(embedder: Embedder) -> dict[str, object]:
    """A memory that the last note told is forgotten in the middle: where it still goes along, and what the prefix is
    worth afterwards: in the first request, which reads anew what stood behind that note, and in those after it.
    """
    every = thirty_exchanges()
    half = len(every) // 2
    known = {memory.content: memory.id for memory in known_memories()}
    async with running_product(embedder) as product, running_product(embedder) as other:
        conversation, without = Conversation(product), Conversation(other, None)
        await conversation.exchanges(every[:half])
        newest = conversation.requests[-1].notes()[-1]
        content = next(content for content in known if content in newest)
        await product.erasure.memory(USER, known[content])
        await conversation.exchanges(every[half:])
        await without.exchanges(every)
    in_first_half = sum(content in sent.body.decode() for sent in conversation.requests[:half])
    later = sum(content in sent.body.decode() for sent in conversation.requests[half:])
    return {
        "requests_with_it_before": in_first_half,
        "requests_with_it_after": later,
        "ratio_right_after": ratio(conversation.hits[half : half + 1], without.hits[half : half + 1]),
        "ratio_later": ratio(conversation.hits[half + 1 :], without.hits[half + 1 :]),
        "ratio": ratio(conversation.hits, without.hits),
        "note_tokens": conversation.note_tokens(),
    }


async def tool_loop(embedder: Embedder) -> dict[str, object]:
    """A question, and five calls that each carry one tool's result more."""
    every = thirty_exchanges()
    async with running_product(embedder) as product:
        conversation = Conversation(product)
        await conversation.exchanges(every[:5])
        conversation.messages.append({"role": "user", "content": every[5][0]})
        first = await conversation.send()
        calls = []
        for number in range(TOOL_CALLS):
            conversation.messages += tool_traffic(number)
            calls.append(await conversation.send())
    return {
        "calls": len(calls),
        "notes": len(first.notes()),
        "new_notes": sum(note not in first.notes() for call in calls for note in call.notes()),
        "identical": sum(call.notes() == first.notes() and starts_alike(first, call) for call in calls),
    }


def tool_traffic(number: int) -> list[dict[str, Any]]:
    call = {
        "id": f"call-{number}",
        "type": "function",
        "function": {"name": "look_up", "arguments": f'{{"n":{number}}}'},
    }
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": f"call-{number}",
            "content": f"Result {number}: my piano costs {number} euros.",
        },
    ]


def starts_alike(first: Request, later: Request) -> bool:
    """Whether the later request's messages begin with all of the first one's."""
    return later.messages()[: len(first.messages())] == first.messages()


def ratio(hits: Sequence[int], without: Sequence[int]) -> float:
    """Blocks hit in these requests, of those that are hit without memory."""
    return round(sum(hits) / max(1, sum(without)), 4)


# The report


async def measured() -> dict[str, dict[str, object]]:
    async with open_embedder(from_process(None, {})) as embedder:
        turns = {
            name: await thirty_turns(embedder, placement)
            for name, placement in track(VARIANTS.items(), description="conversations")
        }
        forgotten, looped = await forgetting(embedder), await tool_loop(embedder)
        through_responses = await responses(embedder)
    without = turns["no memory"].hits
    found: dict[str, dict[str, object]] = {
        name: {
            "blocks_hit": sum(one.hits),
            "ratio": ratio(one.hits, without),
            "notes": len(one.requests[-1].notes()),
            "note_tokens": one.note_tokens(),
        }
        for name, one in turns.items()
    }
    return {**found, **through_responses, "forget": forgotten, "tool_loop": looped}


def figures(found: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    ours, forgotten, looped = found["before_last_user"], found["forget"], found["tool_loop"]
    both = (found["responses_resent"], found["responses_chained"])
    return {
        "ratio": ours["ratio"],
        "notes": ours["notes"],
        "tokens of notes": ours["note_tokens"],
        "requests with a memory before it is forgotten": forgotten["requests_with_it_before"],
        "requests with it afterwards": forgotten["requests_with_it_after"],
        "ratio of responses, items sent again": both[0]["ratio"],
        "ratio of responses, in a chain": both[1]["ratio"],
        "notes of responses": min(one["notes"] for one in both),
        "tokens of notes of responses": max(one["note_tokens"] for one in both),
        "ratio once a forgotten memory's note has gone": forgotten["ratio_later"],
        "calls of a tool loop with the same notes": looped["identical"],
        "new notes in a tool loop": looped["new_notes"],
        "notes of a tool loop": looped["notes"],
    }


def main() -> int:
    options = bench_parser("prefix", __doc__).parse_args()
    report = Report("prefix", BARS, options.json)
    found = asyncio.run(measured())
    rows = [(name, key.replace("_", " "), value) for name, values in found.items() for key, value in values.items()]
    result = {"turns": len(thirty_exchanges()), "block_tokens": BLOCK_TOKENS, **found}
    return report.finish(result, [Sheet("prefix cache", ("variant", "figure", "is"), rows)], figures(found))


if __name__ == "__main__":
    sys.exit(main())
