"""Deletes memories permanently: the only code that does so, for REST, command line and requests in a chat.

The ids are first recorded as forgotten, so that no stored plan restores them; then all notes that hold them are
dropped, so that no later request carries them; then the rows are deleted. Deleting a memory never restores one that it
superseded. Forgetting single memories keeps the conversation record; deleting a turn, a project or everything also
deletes the record of it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from memory.errors import NotFound
from memory.language import bare_reply
from memory.model import Evidence, Memory, MemoryStatus, Role, Scope, statement_key
from memory.model.derived import hanging_on
from memory.model.memories import CONFIDENCE_STEP
from memory.model.withdrawn import all_evidence, with_withdrawn, withdrawn_evidence, withdrawn_of, without_withdrawn
from memory.model.wordings import as_worded, without_wordings
from memory.ports import Clock, ConversationRecord, LedgerWrite, MemoryBank, MemoryFilter, RequestStores
from memory.ports.paging import batched
from memory.service.carried_words import without_carried
from memory.service.locked_writes import rewrite_rows
from memory.service.memory_scan import own_record, scanned
from memory.service.raw_word_search import RawWordSearch
from memory.service.shared_rows import SharedRows
from memory.service.summary_exclusions import SummaryExclusions, WithdrawnSummaries

DELETE_BATCH = 200  # rows deleted in one step, before which the user's lock is renewed: well within its expiry
TURNS_AT_ONCE = 100  # under one hold of the user's lock: 25 possible rows with raw words each


@dataclass(frozen=True, slots=True)
class SourceForgotten:
    """`forgotten`: memories based on that turn alone. `kept`: those that have other evidence of the user."""

    forgotten: tuple[str, ...]
    kept: tuple[str, ...]


class Erasure:
    """Methods raise `NotFound`, `Unavailable` or `Conflict`; each may be repeated safely."""

    def __init__(
        self, *, memories: MemoryBank, turn_log: ConversationRecord, stores: RequestStores, clock: Clock
    ) -> None:
        self._store = memories.store
        self._raw_words = RawWordSearch(memories.store, turn_log)
        self._ledger = memories.ledger
        self._turn_log = turn_log
        self._stores = stores
        self._shared = SharedRows(memories, stores, clock=clock)
        self._exclusions = SummaryExclusions(stores.summaries)
        self._withdrawn = WithdrawnSummaries(summaries=stores.summaries, notes=stores.notes, clock=clock)
        self._clock = clock

    async def forget_held(
        self, user_id: str, held: LedgerWrite, memory_ids: Collection[str], *, known: Sequence[Memory] = ()
    ) -> list[str]:
        """Delete under the user's lock, which the caller holds, also duplicates, reflections, and the raw words of the
        turns that they quote, and of those that say the same. Returns the ids of all memories that are deleted.

        `known`: those of the memories that the caller has read under the lock. The caller calls `drop_notes` with all
        of them again after releasing the lock.
        """
        gone = list(dict.fromkeys([*memory_ids, *await self._hanging_on(user_id, held, memory_ids)]))
        known_ids = {memory.id for memory in known}
        unknown = await self._store.memories(user_id, [one for one in gone if one not in known_ids])
        forgotten = [*known, *unknown]
        said = [*forgotten, *(worded for one in forgotten for worded in as_worded(one))]
        await self._narrow(user_id, held, forgotten, spare=gone)
        found = await self._raw_words.of_memories(user_id, said, held)
        await self._exclusions.leave_out(user_id, found.turn_ids)
        await self._exclusions.forget(user_id, said, between=held.renew)
        raw_ids = {*found.row_ids, *(one.id for one in forgotten if one.status is MemoryStatus.RAW)}
        memories = [one for one in gone if one not in raw_ids]
        await self.erase_rows(user_id, held, (), sorted(raw_ids))  # first: a repeat finds them by the memories
        await self.erase_rows(user_id, held, memories)
        return memories

    async def _narrow(
        self, user_id: str, held: LedgerWrite, forgotten: Sequence[Memory], *, spare: Collection[str]
    ) -> None:
        """Memories of a sentence shared with what is forgotten, or that took its words along, keep their own alone."""
        gone = by_turn(forgotten)
        if not gone:
            return
        ids: list[str] = []
        async for memories in scanned(self._store, MemoryFilter(user_id, status=None), held=held):
            ids += [m.id for m in memories if m.id not in spare and narrowed(m, gone, now=m.updated_at) is not m]
        for batch in batched(ids, DELETE_BATCH):
            records = await self._store.get(user_id, batch)
            rows = [narrowed(record.memory, gone, now=self._clock()) for record in records]
            await rewrite_rows(self._store, held, user_id, rows, records)

    async def erase_rows(
        self, user_id: str, held: LedgerWrite, memory_ids: Sequence[str], raw_ids: Sequence[str] = ()
    ) -> None:
        """Delete rows, and notes, profile lines, states and counts with them; what they were learnt from stays.

        `raw_ids`: of rows with raw words, which are in no working set or profile, and are not counted.
        """
        for batch in batched(memory_ids, DELETE_BATCH):
            await held.forget(batch)  # first: if we die in between, no stored plan restores them
            await self.drop_notes(user_id, batch)
            await self._stores.usage_counts.drop(user_id, batch)
            await held.renew()  # the steps before may have taken long
            await self._store.delete(user_id, batch)
        for batch in batched(raw_ids, DELETE_BATCH):
            await held.forget((), raw_ids=batch)
            await self._stores.notes.drop(user_id, batch, now=self._clock())
            await self._store.delete(user_id, batch)
            await self._stores.notes.drop(user_id, batch, now=self._clock())  # whoever read them meanwhile
        if raw_ids:
            await self.drop_states(user_id)

    async def _hanging_on(self, user_id: str, held: LedgerWrite, memory_ids: Collection[str]) -> list[str]:
        """Archived duplicates of these memories, and reflections derived from them."""
        if not memory_ids:
            return []
        wheres = (
            MemoryFilter(user_id, status=MemoryStatus.ARCHIVED),
            MemoryFilter(user_id, status=None, memory_types=("reflective",)),
        )
        possible: dict[str, Memory] = {}
        for where in wheres:
            async for memories in scanned(self._store, where, held=held):
                possible |= {memory.id: memory for memory in memories}
        return hanging_on(possible.values(), memory_ids)

    async def drop_notes(self, user_id: str, memory_ids: Collection[str]) -> None:
        """Drop all notes that hold these memories, and their lines in profiles, so that no later request repeats them.

        Called before the deletion, since nobody would repeat it after a crash; and after releasing the lock, since
        until then a request in progress may read the old contents and store a note with them.
        """
        if memory_ids:
            await self._stores.profiles.drop(user_id, memory_ids, now=self._clock())
            await self._stores.notes.drop(user_id, memory_ids, now=self._clock())
            await self.drop_states(user_id)

    async def drop_states(self, user_id: str) -> None:
        """Delete the states of the user's conversations, and the notes that hold summaries which are gone: any of them
        may hold what is forgotten, in other words.
        """
        await self._stores.states.drop(user_id, now=self._clock())
        await self._withdrawn.drop(user_id)

    async def memory(self, user_id: str, memory_id: str, *, expected: Collection[str] | None = None) -> None:
        """`expected`: raises `VersionChanged` unless the memory has one of these versions."""
        async with self._ledger.write(user_id) as held:
            await own_record(self._store, user_id, memory_id, expected=expected)
            gone = await self.forget_held(user_id, held, [memory_id])
        await self.drop_notes(user_id, gone)

    async def scope(self, user_id: str, project_id: str) -> tuple[int, int]:
        """Delete all memories of the user, or of exactly that project, and their conversation record before this call;
        turns not learnt yet are withdrawn.

        Also deletes the profiles of that scope, with their pinned lines; without a project, the user's receipts, links
        between exchanges and conversation trees too. Returns the numbers of memories and of turns withdrawn.
        """
        Scope(user_id, project_id)  # refuses invalid ids
        called_at = self._clock()
        where = MemoryFilter(user_id, project_id, status=None, exact_project=bool(project_id))
        memories, turns, is_left = 0, 0, True
        while is_left:
            async with self._ledger.write(user_id) as held:
                held.touch(())  # plans that were stored before are outdated
                turns += await self._turn_log.withdraw(user_id, project_id=project_id, opened_before=called_at)
                ids = await self._store.ids(where)
                raw_ids = await self._store.ids(replace(where, status=MemoryStatus.RAW))
            is_left = bool(ids or raw_ids)
            for batch in batched(ids, DELETE_BATCH):  # dependent memories are of the same scope
                async with self._ledger.write(user_id) as held:
                    await self.erase_rows(user_id, held, batch)
                await self.drop_notes(user_id, batch)
            for batch in batched(raw_ids, DELETE_BATCH):
                async with self._ledger.write(user_id) as held:
                    await self.erase_rows(user_id, held, (), batch)
            memories += len(ids)
        await self._turn_log.messages.erase(user_id, project_id=project_id, before=called_at)
        await self._erase_profiles(user_id, project_id)
        await self.drop_states(user_id)
        await self._stores.receipts.erase(user_id, project_id=project_id)  # they contain the user's queries
        if not project_id:
            await self._stores.idempotency.erase(user_id)
            await self._turn_log.chains.erase(user_id)
            await self._turn_log.trees.erase(user_id)
            await self._stores.summaries.erase(user_id)
        return memories, turns

    async def advance_erase_epoch(self, user_id: str) -> bool:
        """After `scope`: delete all that names the user. False, and nothing, if memories were written meanwhile."""
        async with self._ledger.write(user_id) as held:
            if await self._store.ids(MemoryFilter(user_id, status=None)):
                return False
            await self._stores.usage_counts.drop(user_id, ())
            await held.advance_erase_epoch()
        return True

    async def _erase_profiles(self, user_id: str, project_id: str) -> None:
        """Delete all profiles, or that of the project; with pinned lines also all notes, which may hold them."""
        found = await self._stores.profiles.get(user_id, [project_id])
        await self._stores.profiles.erase(user_id, project_id)
        if not project_id or any(profile.pinned for profile in found.values()):
            await self._stores.notes.drop(user_id, (), now=self._clock())

    async def withdraw(self, user_id: str, turn_ids: Collection[str]) -> int:
        """These turns are not learnt, if they are not learnt yet, nor appended again. Returns their number."""
        if not turn_ids:
            return 0
        async with self._ledger.write(user_id) as held:  # whoever learns them now has applied a plan, or will not
            held.touch(())  # plans that were stored before are outdated
            await held.forget((), raw_ids=turn_ids)  # a call with a key that appended them may be repeated
            return await self._turn_log.withdraw(user_id, opened_before=math.inf, only=turn_ids)

    async def source(self, user_id: str, turn_id: str) -> SourceForgotten:
        """Forget what is based on that turn alone, remove its text from the evidence of everything else, and delete it
        from the record.

        A turn not learnt yet never will be. Raises `NotFound` if there is neither such a turn nor a memory based on it.
        """
        await self.withdraw(user_id, [turn_id])
        found = await self.sources(user_id, [turn_id])
        is_deleted = await self._turn_log.messages.delete_turns(user_id, [turn_id]) > 0
        await self.drop_states(user_id)  # summaries go with the turn
        if not (found.forgotten or found.kept or is_deleted):
            raise NotFound("there is no such turn, and no memory stands on it")
        return found

    async def sources(self, user_id: str, turn_ids: Collection[str]) -> SourceForgotten:
        """Forget what is based on these turns alone, whatever its status, and remove them from all other evidence. They
        must not be waiting to be learnt: see `withdraw`.
        """
        sources = frozenset(turn_ids)
        forgotten: list[str] = []
        kept: list[str] = []
        async for memories in scanned(self._store, MemoryFilter(user_id, status=None)):
            ids = [memory.id for memory in memories if _stands_on(memory, sources)]
            for batch in batched(ids, DELETE_BATCH):
                gone, left = await self._take_out(user_id, batch, sources)
                forgotten += gone
                kept += left
        for batch in batched(sorted(sources), TURNS_AT_ONCE):
            async with self._ledger.write(user_id) as held:
                raw_ids = await self._raw_words.of_turns(user_id, batch, held)
                await self.erase_rows(user_id, held, (), raw_ids)
        without = partial(without_sources, turn_ids=sources, now=self._clock())
        gone, left = await self._shared.forget_sources(user_id, sources, without)
        await self.drop_states(user_id)
        return SourceForgotten((*forgotten, *gone), (*kept, *left))

    async def _take_out(
        self, user_id: str, memory_ids: Sequence[str], sources: Collection[str]
    ) -> tuple[list[str], list[str]]:
        async with self._ledger.write(user_id) as held:
            records = [r for r in await self._store.get(user_id, memory_ids) if _stands_on(r.memory, sources)]
            now = self._clock()
            rows = {record.memory.id: without_sources(record.memory, sources, now=now) for record in records}
            lost = [record.memory for record in records if rows[record.memory.id] is None]
            left = [row for row in rows.values() if row is not None]
            await rewrite_rows(self._store, held, user_id, left, records)
            gone = await self.forget_held(user_id, held, [one.id for one in lost], known=lost) if lost else []
        await self.drop_notes(user_id, gone)
        return gone, [row.id for row in left]


def shared_evidence(memories: Iterable[Memory]) -> frozenset[tuple[str, str]]:
    """Turn and quote of the sentences of which these memories say a part."""
    quoted = (one for memory in memories for one in all_evidence(memory))
    return frozenset((one.turn_id, one.quote) for one in quoted if one.is_part)


def by_turn(memories: Iterable[Memory]) -> dict[str, list[Memory]]:
    found: dict[str, list[Memory]] = {}
    for memory in memories:
        for turn_id in {one.turn_id for one in all_evidence(memory)}:
            found.setdefault(turn_id, []).append(memory)
    return found


def narrowed(memory: Memory, gone: Mapping[str, Sequence[Memory]], *, now: float) -> Memory:
    """The memory in its own words where it shares a sentence or words with what is gone (`by_turn`), else as it is."""
    near = [one for turn_id in {quoted.turn_id for quoted in all_evidence(memory)} for one in gone.get(turn_id, ())]
    shared, told = shared_evidence(near), without_carried(memory, near)
    if told is memory and not shared & shared_evidence([memory]):
        return memory
    own = [
        tuple(e.alone if (e.turn_id, e.quote) in shared else e for e in quoted)
        for quoted in (memory.evidence, withdrawn_evidence(memory))
    ]
    kept = replace(told, evidence=own[0], updated_at=now)
    return with_withdrawn(kept, replace(withdrawn_of(memory), evidence=own[1])) if own[1] else kept


def without_sources(memory: Memory, turn_ids: Collection[str], *, now: float) -> Memory | None:
    """The memory without the evidence of these turns, also what was withdrawn; None if no other statement of the user
    supports it. What it said before it was corrected goes as well: it may be what was said there.
    """
    for turn_id in sorted({one.turn_id for one in all_evidence(memory)} & set(turn_ids)):
        left = without_evidence(memory, [one for one in memory.evidence if one.turn_id == turn_id], now=now)
        if left is None:
            return None
        memory = replace(without_wordings(without_withdrawn(left, [turn_id])), updated_at=now)
    return memory


def without_evidence(memory: Memory, lost: Collection[Evidence], *, now: float) -> Memory | None:
    """The memory without that evidence; None if no other statement of the user supports it."""
    left = tuple(quoted for quoted in memory.evidence if quoted not in lost)
    is_answer = any(quoted.role == Role.ASSISTANT for quoted in memory.evidence[:1])
    if is_answer and any(bare_reply(quoted.words) for quoted in lost):
        return None  # a question is a statement of the user only with the yes to it
    if not any(_holds_up(quoted, memory) for quoted in left):
        return None
    if len(left) == len(memory.evidence):
        return memory
    turns = len({quoted.turn_id for quoted in lost})
    return replace(memory, evidence=left, confidence=supported(memory.confidence, by=-turns), updated_at=now)


def supported(confidence: float, *, by: int) -> float:
    """The confidence after so many repetitions more, or, if negative, fewer."""
    return max(0.0, 1.0 - (1.0 - confidence) * (1.0 - CONFIDENCE_STEP) ** by)


def _stands_on(memory: Memory, turn_ids: Collection[str]) -> bool:
    return any(quoted.turn_id in turn_ids for quoted in all_evidence(memory))


def _holds_up(quoted: Evidence, memory: Memory) -> bool:
    """Whether this quote alone says what the memory says, so that it was added as a repetition.

    For a memory worded by a model, or with a date, the first evidence counts as its source.
    """
    if quoted.role == Role.TOOL:
        return False
    first = memory.evidence[0]
    repeats = statement_key(quoted.words) in (statement_key(memory.content), statement_key(first.words))
    return quoted == first or ((repeats or quoted.words in memory.content) and not bare_reply(quoted.words))
