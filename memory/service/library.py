"""The library: every operation on memories, called by REST, command line, MCP and pages.

Other users' memories are never shown, changed or counted: they look as if they did not exist. Memories are stored as
given, and forgotten ones are gone: no work in progress restores them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from functools import partial
from typing import Protocol

from memory.chat.exchanges import exchanges_of
from memory.errors import BadInput, NotFound
from memory.model import (
    MEMORY_TYPES,
    Candidate,
    Change,
    ChangeKind,
    Memory,
    MemoryStatus,
    Message,
    RequestOptions,
    Scope,
    Turn,
    is_valid_id,
)
from memory.model.claim_filters import ANY_CLAIM
from memory.model.erasures import ErasureRecord
from memory.model.memories import MemoryVisibility
from memory.ports import Backlog, MemoryBank, MemoryFilter, Page, RequestStores, TurnLog
from memory.runtime.tracing import SpanName
from memory.service.conversations import Conversations, noted_contents
from memory.service.idempotency import NewId, RepeatableCalls
from memory.service.locked_writes import same_or_new, write_rows
from memory.service.memory_edits import MemoryEdits
from memory.service.memory_scan import chosen_page, own_record
from memory.service.operator import OperatorService, OperatorSources
from memory.service.profiles import ProfileService
from memory.service.redacted_input import imported_turns, redacted_edit, redacted_items
from memory.service.requests import (
    ExplainedReceipt,
    Intake,
    ListedContent,
    MemoryEdit,
    NewMemory,
    Stats,
    memory_to_store,
    refuse_unknown_types,
    time_said,
)
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_projects import SharedProjects
from memory.service.transfers import MemoryTransfers
from memory.service.user_erasures import UserErasures

MEMORIES_PER_ADD_MAX = 200  # embedded within a second
MESSAGES_PER_APPEND_MAX = 1_000  # each exchange is one durable append
TURNS_PER_RENEWAL = 50  # durable appends before which the user's lock is renewed: well within its expiry
PAGE_MEMORIES_MAX = 100

PLAIN = RequestOptions()
ANYTHING = ListedContent()


class Searcher(Protocol):
    """The ranking that a chat would get: `memory.recall.pipeline.RecallPipeline`."""

    async def search(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message],
        options: RequestOptions,
        as_of: float | None = None,
    ) -> list[Candidate]: ...


class Library(Service):
    """Built from ports, once per process. Methods raise `BadInput` (`NotFound`), `Unavailable` or `Conflict`."""

    def __init__(
        self,
        *,
        memories: MemoryBank,
        turn_log: TurnLog,
        stores: RequestStores,
        searcher: Searcher,
        intake: Intake,
        sources: OperatorSources,
    ) -> None:
        parts = ServiceParts(memories, turn_log, stores, intake)
        super().__init__(parts)
        self._turn_log = turn_log
        self._receipts = stores.receipts
        self.receipts, self.forget_source = stores.receipts.page, parts.erasure.source
        self._summaries = stores.summaries
        self._edits = MemoryEdits(parts)
        self.envelopes, self.opt_outs = intake.envelopes, parts.opt_outs
        self.projects = SharedProjects(parts)
        self.erasures = UserErasures(parts, self.projects)
        self.conversations = Conversations(parts)
        self.profiles = ProfileService(parts)
        self.transfers = MemoryTransfers(parts, self.profiles, self.projects)
        self.operator = OperatorService(parts, sources)
        self._searcher = searcher
        self._repeatable = RepeatableCalls(stores.idempotency, clock=intake.clock, new_id=intake.new_id)

    async def add(
        self, scope: Scope, items: Sequence[NewMemory], *, idempotency_key: str = "", each_once: bool = False
    ) -> list[str]:
        """Store each memory, without secrets, one id per item, in order; search finds them on return.

        `each_once`: of one that says what an active memory of the same project says, that memory's id.
        """
        work = partial(self._add, scope, items, each_once=each_once)
        return await self._repeatable.once(scope.user_id, idempotency_key, ("add", scope, items), work)

    async def _add(self, scope: Scope, items: Sequence[NewMemory], new_id: NewId, *, each_once: bool) -> list[str]:
        if not 1 <= len(items) <= MEMORIES_PER_ADD_MAX:
            raise BadInput(f"expected 1 to {MEMORIES_PER_ADD_MAX} memories, got {len(items)}; send several calls")
        epoch = await self._writes.begin(scope.user_id)
        items = await redacted_items(items, self._intake.redact)
        if any(item.visibility is not MemoryVisibility.OWNER_ONLY for item in items):
            return await self.projects.memories.add(scope, items, new_id, epoch=epoch)
        now = self._clock()
        given = [(item, index, new_id()) for index, item in enumerate(items)]
        memories = [
            memory_to_store(scope, item, index, now=now, memory_id=new, zones=self._intake.zones)
            for item, index, new in given
        ]
        vectors = await self._embedder.embed([memory.content for memory in memories], is_urgent=False)
        async with self._writes.lock(epoch) as held:
            if each_once:
                memories = [await same_or_new(self._store, memory) for memory in memories]
            ids = [memory.id for memory in memories]
            stored = {memory.id for memory in await self._store.memories(scope.user_id, ids)}
            written = stored | await held.forgotten(ids)  # by an earlier attempt of a call with a key
            kept = [index for index, memory_id in enumerate(ids) if memory_id not in written]
            changes = [Change(ChangeKind.CREATE, memories[index]) for index in kept]
            await write_rows(self._store, held, scope.user_id, changes, vectors[kept])
        return ids

    async def search(
        self,
        scope: Scope,
        *,
        query: str,
        history: Sequence[Message] = (),
        options: RequestOptions = PLAIN,
        as_of: float | None = None,
    ) -> list[Candidate]:
        """Best first, as a chat with this history and question would get them."""
        if not query.strip():
            raise BadInput("query must not be empty")
        refuse_unknown_types(options.memory_types)
        await self.opt_outs.refuse_opted_out(scope.user_id)
        found = await self._searcher.search(scope, query=query, history=history, options=options, as_of=as_of)
        return await self.projects.memories.presented(scope.user_id, scope.project_id, found)

    async def page(
        self,
        scope: Scope,
        *,
        status: MemoryStatus | None = MemoryStatus.ACTIVE,
        about: ListedContent = ANYTHING,
        as_of: float | None = None,
        limit: int = PAGE_MEMORIES_MAX,
        cursor: str = "",
    ) -> Page[Memory]:
        """One page, newest first. `as_of`: the memories that had that status then, by when things were said."""
        if as_of is None:
            where = about.filter_for(scope, status)
            return await self._store.page(where, limit=limit, cursor=cursor, claim=about.claim)

        async def standing(memories: Sequence[Memory]) -> list[Memory]:
            return [one for one in memories if (was := one.status_at(as_of)) and status in (None, was)]

        where = about.filter_for(scope, None)
        return await chosen_page(self._store, where, standing, claim=about.claim, limit=limit, cursor=cursor)

    async def total(self, scope: Scope, *, status: MemoryStatus | None, about: ListedContent) -> int | None:
        """How many memories all pages have; None if that takes reading them."""
        return await self._store.count(about.filter_for(scope, status)) if about.claim == ANY_CLAIM else None

    async def get(self, user_id: str, memory_id: str) -> Memory:
        shared = await self.projects.memories.get(user_id, memory_id)
        return (await own_record(self._store, user_id, memory_id)).memory if shared is None else shared

    async def history(self, user_id: str, memory_id: str) -> list[Memory]:
        """The memory and those that it superseded, directly or through others, latest first."""
        shared = await self.projects.memories.get(user_id, memory_id)
        return [shared] if shared is not None else await self._edits.history(user_id, memory_id)

    async def patch(
        self, user_id: str, memory_id: str, edit: MemoryEdit, *, expected: Collection[str] | None = None
    ) -> Memory:
        """Change a memory in place, without secrets, or restore it from the archive; id and times of saying stay.

        `expected`: versions; raises `VersionChanged` if it has none of them when it is written. None: any.
        """
        edit = await redacted_edit(edit, self._intake.redact)
        shared = await self.projects.edit(user_id, memory_id, edit, expected=expected)
        return await self._edits.edit(user_id, memory_id, edit, expected=expected) if shared is None else shared

    async def delete(self, user_id: str, memory_id: str, *, expected: Collection[str] | None = None) -> None:
        """Forget a memory. `expected`: as in `patch`."""
        if not await self.projects.memories.delete(user_id, memory_id, expected=expected):
            await self._erasure.memory(user_id, memory_id, expected=expected)

    async def erase(self, user_id: str, project_id: str = "") -> ErasureRecord:
        """Delete all of the user, or of exactly that project, and withdraw turns not learnt before this call.

        `erasures` shows whether files are rewritten.
        """
        return await (self.erasures.project(user_id, project_id) if project_id else self.erasures.everything(user_id))

    async def receipt(self, user_id: str, receipt_id: str) -> ExplainedReceipt:
        """Why a request got its memories, with the current contents of those memories."""
        found = await self._receipts.get(user_id, receipt_id) if is_valid_id(receipt_id) else None
        if found is None:
            raise NotFound("there is no such receipt")
        contents = await noted_contents(self._store, self._summaries, user_id, found.memory_ids())
        return ExplainedReceipt(found, contents)

    async def append_turn(
        self,
        scope: Scope,
        messages: Sequence[Message],
        *,
        at: float | None = None,
        utc_offset: int | None = None,
        trace_id: str = "",
        idempotency_key: str = "",
    ) -> str:
        """Record imported exchanges, to be learnt as if they had come through the proxy. Returns the last turn's id.

        `at` (None: now): when the first was said, in a zone of that `utc_offset` (None: the configured one); further
        exchanges of the call are a millisecond apart, which keeps their order. System messages and tool traffic are
        left out.
        """
        started = time_said(at, self._clock(), "at")
        offset = self._intake.zones.offset(started) if utc_offset is None else utc_offset
        first = Turn("", scope, started, (), trace_id=trace_id, utc_offset=offset)
        request = ("turns", scope, messages, at, trace_id)
        work = partial(self._append, first, messages)
        [turn_id] = await self._repeatable.once(scope.user_id, idempotency_key, request, work)
        return turn_id

    async def _append(self, first: Turn, messages: Sequence[Message], new_id: NewId) -> list[str]:
        if len(messages) > MESSAGES_PER_APPEND_MAX:
            raise BadInput(
                f"expected at most {MESSAGES_PER_APPEND_MAX} messages, got {len(messages)}; send several calls"
            )
        exchanges = exchanges_of(messages)
        if not exchanges:
            raise BadInput("messages must hold at least one user message with text")
        epoch = await self._writes.begin(first.scope.user_id)
        turns = await imported_turns(first, exchanges, new_id=new_id, redact=self._intake.redact)
        async with self._writes.lock(epoch) as held:
            forgotten = await held.forgotten([turn.id for turn in turns])  # by an earlier attempt of a call with a key
            for ordinal, turn in enumerate(turns):
                if ordinal % TURNS_PER_RENEWAL == 0:
                    await held.renew()
                if turn.id not in forgotten:
                    with self._intake.tracer.span(SpanName.APPEND_TURN):
                        await self._turn_log.append(turn)
        return [turns[-1].id]

    async def flush(self, user_id: str, session_id: str = "") -> Backlog:
        """Wait until everything said before this call is learnt.

        What remains waits for a retry, or took longer than `FlushTiming.longest`; that includes replies still being
        streamed, since a turn is learnt after its reply has ended.
        """
        Scope(user_id, session_id=session_id)  # refuses invalid ids
        timing = self._intake.flush_timing
        loop = asyncio.get_running_loop()
        for _ in range(2):  # again if the log was blocked: then it gets what waited for it in other processes
            await asyncio.sleep(timing.reply_delay)
            began = loop.time()
            await self._turn_log.make_due_now(user_id, session_id=session_id)
            if loop.time() - began <= timing.reply_delay:
                break
        opened_before = self._clock()  # after the pause: a turn counts from its arrival in the log
        polls, polls_of_retries = (max(1, int(seconds / timing.poll)) for seconds in (timing.longest, timing.retry))
        for _ in range(polls):
            backlog = await self._turn_log.backlog(user_id, session_id=session_id, opened_before=opened_before)
            if not backlog.pending:
                break
            if backlog.pending <= backlog.waiting:
                polls_of_retries -= 1
                if polls_of_retries <= 0:
                    break
            await asyncio.sleep(timing.poll)
            await self._turn_log.make_due_now(user_id, session_id=session_id)  # a reply may have ended meanwhile
        await self.profiles.refresh(user_id)
        if session_id:
            await self._summaries.end(user_id, session_id)
        return backlog

    async def end_session(self, user_id: str, session_id: str) -> None:
        """The session is over: its turns are learnt now, and then its summary is written. Raises `NotFound`."""
        await self.conversations.end(user_id, session_id)
        await self._turn_log.make_due_now(user_id, session_id=session_id)

    async def stats(self, user_id: str) -> Stats:
        by_type = {kind: await self._store.count(MemoryFilter(user_id, memory_types=(kind,))) for kind in MEMORY_TYPES}
        superseded = await self._store.count(MemoryFilter(user_id, status=MemoryStatus.SUPERSEDED))
        archived = await self._store.count(MemoryFilter(user_id, status=MemoryStatus.ARCHIVED))
        backlog = await self._turn_log.backlog(user_id, opened_before=self._clock())
        since = await self.opt_outs.since(user_id)
        return Stats(sum(by_type.values()), superseded, archived, by_type, backlog.pending, backlog.failed, since)

    def turns(self, user_id: str, session_id: str = "") -> AsyncIterator[Turn]:
        """The conversation record, oldest first."""
        return self._turn_log.turns(user_id, session_id=session_id)

    async def is_ready(self) -> bool:
        """Whether memories can be read now."""
        return await self._store.is_ready()
