"""The web page's API over a real library: Milvus Lite, SQLite and the packaged model, served on a port of loopback;
and what its users have: memories with evidence, uses and a past, receipts, and nothing else.

Its loop runs in a thread of its own, so that a browser can be driven from the caller's.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from api_parts import app_of, service_token
from milvus_lite_server import MilvusLiteServer
from prometheus_client import CollectorRegistry
from served_app import asgi_here, in_own_loop

from memory.api.callers import CallerRules
from memory.model import (
    CandidateVerdict,
    CarriedNote,
    Change,
    ChangeKind,
    Evidence,
    Memory,
    MemoryStatus,
    Message,
    RecallStatus,
    Receipt,
    ReceiptCandidate,
    Scope,
    Turn,
    TurnStatus,
)
from memory.model.token_claims import ClaimNames
from memory.ports import LearnDue
from memory.processes import composition
from memory.processes.deployment_parts import SeenParts
from memory.settings import Settings, loader

OPERATOR, PROGRAM = "mpt_operator-0123456789", "mpt_program-0123456789"
MODES = ("development", "header", "jwt")
DAY = 86_400.0
QUESTION = "What should I bring to the tea party?"

_Result = TypeVar("_Result")


@dataclass
class PageWorld:
    """`urls`: by identity mode; all serve the same library."""

    urls: dict[str, str]
    parts: composition.Parts
    loop: asyncio.AbstractEventLoop

    @property
    def url(self) -> str:
        return self.urls["development"]

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def put(self, *memories: Memory) -> None:
        """Rows as learning leaves them, of one user."""
        self.run(self._put(memories))

    async def _put(self, memories: Sequence[Memory]) -> None:
        vectors = await self.parts.embedder.embed([memory.content for memory in memories], is_urgent=False)
        async with self.parts.ledger.write(memories[0].user_id) as held:
            held.touch([memory.id for memory in memories])
            changes = [Change(ChangeKind.CREATE, memory) for memory in memories]
            await self.parts.store.apply(memories[0].user_id, changes, vectors)

    def keep(self, *receipts: Receipt) -> None:
        """Return once they can be read."""

        async def kept() -> None:
            for receipt in receipts:
                self.parts.stores.receipts.keep(receipt)
            while await self.parts.stores.receipts.get(receipts[-1].user_id, receipts[-1].id) is None:
                await asyncio.sleep(0.01)

        self.run(kept())

    def say(self, user_id: str, turn_id: str, question: str, answer: str, *, receipt_id: str = "") -> None:
        """A chat in the record, as it is once it was learnt from."""

        async def said() -> None:
            log, now = self.parts.state.turn_log, composition.SYSTEM_CLOCK()
            scope, asked = Scope(user_id, session_id=f"{user_id}-{turn_id}"), (Message("user", question),)
            await log.append(Turn(turn_id, scope, now, asked, TurnStatus.CLOSED, answer, now, receipt_id=receipt_id))
            await log.withdraw(user_id, opened_before=math.inf, only=[turn_id])

        self.run(said())

    def bury(self, user_id: str, *turn_ids: str, reason: str = "the model did not answer") -> None:
        """One dead letter for each turn."""

        async def buried() -> None:
            log = self.parts.state.turn_log
            for turn_id in turn_ids:
                said = (Message("user", "nobody but me may read this"),)
                scope, now = Scope(user_id, session_id=f"{user_id}-{turn_id}"), composition.SYSTEM_CLOCK()
                await log.append(Turn(turn_id, scope, now, said, TurnStatus.CLOSED, "yes", now))
                lease = await log.lease(now=now + 1, seconds=60.0, due=LearnDue())
                assert lease is not None
                await log.move_to_dead_letters(lease, now=now, reason=reason)

        self.run(buried())

    def contents(self, user_id: str) -> list[str]:
        page = self.run(self.parts.library().page(Scope(user_id)))
        return [memory.content for memory in page.items]


@contextmanager
def page_world(folder: Path, milvus: MilvusLiteServer, collection: str) -> Iterator[PageWorld]:
    (folder / "data").mkdir()
    config = folder / "memproxy.yaml"
    config.write_text(json.dumps({"memory": {"milvus": {"collection": collection}}}), encoding="utf-8")
    places = {
        "data_dir": str(folder / "data"),
        "run_dir": str(folder),
        "models_dir": str(loader.from_process(None, {}).models_path),
        "milvus_uri": milvus.uri,
        "envoy_admin_port": "1",  # where nobody answers
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composition, "REGISTRY", CollectorRegistry())  # the process's own takes one set of metrics
        with in_own_loop(_served(loader.load(config, places, {}))) as ((urls, parts), loop):
            yield PageWorld(urls, parts, loop)


@asynccontextmanager
async def _served(settings: Settings) -> AsyncIterator[tuple[dict[str, str], composition.Parts]]:
    """Its URLs, by identity mode."""
    tokens = service_token("operator", OPERATOR, "operate"), service_token("program", PROGRAM, "read", "write")
    rules = CallerRules(ClaimNames(project="projects"), tokens)
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(composition.open_parts(settings))
        await parts.store.prepare()
        seen = SeenParts(settings, parts.state.introductions)
        apps = {mode: app_of(parts.library(seen), mode, rules=rules) for mode in MODES}
        yield {mode: await stack.enter_async_context(asgi_here(app)) for mode, app in apps.items()}, parts


def many(memory: Memory, count: int, content: Callable[[int], str]) -> list[Memory]:
    """Copies of a memory, each a day older than the one before."""
    return [
        replace(
            memory,
            id=f"{memory.id}-{number}",
            content=content(number),
            **{at: getattr(memory, at) - number * 86_400.0 for at in ("created_at", "updated_at", "said_at")},
        )
        for number in range(count)
    ]


def memory(user: str, name: str, content: str, *, days: float = 1.0, **fields: Any) -> Memory:
    """`days`: how long ago it was said."""
    at = composition.SYSTEM_CLOCK() - days * DAY
    return Memory(f"{user}-{name}", user, content, at, at, at, **fields)


def receipt(user: str, name: str, *memory_ids: str, query: str = QUESTION, hours: float = 2.0) -> Receipt:
    """A chat whose note held these memories, or that found nothing."""
    return Receipt(
        f"r-{user}-{name}",
        user,
        composition.SYSTEM_CLOCK() - hours * 3_600.0,
        RecallStatus.USED if memory_ids else RecallStatus.EMPTY,
        "found" if memory_ids else "nothing_relevant",
        query=query,
        candidates=tuple(ReceiptCandidate(one, 0.8, {}, CandidateVerdict.INJECTED) for one in memory_ids),
        notes=(CarriedNote(None, memory_ids, 21 * len(memory_ids), is_new=True),) if memory_ids else (),
        timings_ms={"embed": 4.2, "search": 6.1, "rank": 1.3},
    )


def fill(world: PageWorld, user: str) -> None:
    """Three memories that are current, one of which replaced another, and one in the archive."""
    world.put(
        memory(
            user,
            "tea",
            "Prefers green tea to coffee",
            days=1,
            category="preference",
            evidence=(Evidence("I'd rather have green tea than coffee", "t1"),),
            access_count=2,
        ),
        memory(user, "city", "Lives in Porto", days=3, evidence=(Evidence("we moved to Porto last week", "t2"),)),
        memory(user, "dog", "Has a dog called Kim", days=3, project_id="home"),
        memory(
            user,
            "old-city",
            "Lives in Braga",
            days=300,
            status=MemoryStatus.SUPERSEDED,
            superseded_by=f"{user}-city",
            superseded_at=composition.SYSTEM_CLOCK(),
        ),
        memory(user, "archived", "Was looking for a used bicycle", days=400, status=MemoryStatus.ARCHIVED),
    )
    world.keep(receipt(user, "tea", f"{user}-tea"), receipt(user, "none", query="What is 2 + 2?", hours=1.0))
