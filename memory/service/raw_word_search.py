"""Finds the rows with raw words that have to go with forgotten memories. Reads the store, and deletes nothing.

These are the rows of the turns that a memory quotes, or quoted, and of those that say the same: a memory that was said
often quotes only the first and the latest of its turns. An answer may say it in other words, so that it is compared
less strictly. A turn goes as a whole. What was said is read from the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

from memory.language.restating import says_any, whole_word_positions, wording_of
from memory.model import Memory, MemoryStatus, Role, Turn
from memory.model.exchanges import folded, is_distinctive
from memory.model.raw_words import ANSWERED, answer_rows_of, passages_of, raw_row_ids, rows_of
from memory.model.withdrawn import all_evidence
from memory.ports import ConversationRecord, LedgerWrite, MemoryFilter, MemoryStore
from memory.ports.paging import batched

# Characters at a statement's beginning by which it is looked up, the longest that it has: few begin alike.
BEGINNINGS = (16, 3)
TURNS_AT_ONCE = 200  # read from the record before the user's lock is renewed
ROWS_AT_ONCE = 1_000  # looked up by id before it is renewed
TURNS_BY_ID_MAX = 250  # for more, all ids of the user's rows are read: that takes less time

Choice: TypeAlias = Callable[[Sequence[Memory]], list[str]]


class Statements:
    """What was said, compared without case, white space, and punctuation at the edges. Pure.

    Its cost for a text does not depend on how many statements there are, unless they begin alike.
    """

    def __init__(self, statements: Iterable[str]) -> None:
        self._by_beginning: dict[str, set[str]] = {}
        for statement in map(_bare, statements):
            length = next((one for one in BEGINNINGS if len(statement) >= one), 0)
            if length and (" " in statement or is_distinctive(statement)):  # a single word says too little
                self._by_beginning.setdefault(statement[:length], set()).add(statement)

    def __bool__(self) -> bool:
        return bool(self._by_beginning)

    def are_in(self, text: str) -> bool:
        """Whether the text contains one of them, at word boundaries."""
        said = folded(text).casefold()
        for length in BEGINNINGS:
            beginnings = {said[at : at + length] for at in range(len(said) - length + 1)}
            for beginning in beginnings & self._by_beginning.keys():
                if any(whole_word_positions(statement, said) for statement in self._by_beginning[beginning]):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class FoundWords:
    """`row_ids`: the stored rows. `turn_ids`: the turns that the memories rest on, and whose user says the same."""

    row_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()


class RawWordSearch:
    """Raises `Unavailable`, and `Conflict` if the lock was lost meanwhile. `held`: the user's lock; it is renewed."""

    def __init__(self, store: MemoryStore, turn_log: ConversationRecord) -> None:
        self._store = store
        self._turn_log = turn_log

    async def of_memories(self, user_id: str, forgotten: Sequence[Memory], held: LedgerWrite) -> FoundWords:
        """Of the turns that these memories rest on, and of those that say the same."""
        turns = {quoted.turn_id for one in forgotten for quoted in all_evidence(one) if quoted.turn_id}
        said, answering = Statements(_said(forgotten)), set[str]()
        wordings = [wording_of(statement) for statement in sorted(_said(forgotten))]
        if said:
            async for rows in self._recorded(user_id, held):  # may take long; the loop must not wait
                own, answers = [[one for one in rows if _is_answer(one) is which] for which in (False, True)]
                turns |= await asyncio.to_thread(_turns_of, own, said.are_in)
                answering |= await asyncio.to_thread(_turns_of, answers, partial(says_any, wordings=wordings))
        row_ids = await self.of_turns(user_id, sorted(turns | answering), held)
        return FoundWords(tuple(row_ids), tuple(sorted(turns)))

    async def chosen(
        self, user_id: str, choices: Mapping[int, Choice], held: LedgerWrite, *, project_id: str
    ) -> dict[int, list[str]]:
        """The stored rows of the turns of which each choice returns a row; in that project or none, "" meaning all."""
        turns: dict[int, set[str]] = {number: set() for number in choices}
        async for rows in self._recorded(user_id, held):
            own = [row for row in rows if not project_id or row.project_id in ("", project_id)]
            for number, choice in choices.items():
                ids = set(await asyncio.to_thread(choice, own))
                turns[number] |= {row.evidence[0].turn_id for row in own if row.id in ids}
        return {number: await self.of_turns(user_id, sorted(found), held) for number, found in turns.items()}

    async def of_turns(self, user_id: str, turn_ids: Sequence[str], held: LedgerWrite) -> list[str]:
        """The rows of these turns that are stored."""
        ids = [row_id for turn_id in turn_ids for row_id in raw_row_ids(user_id, turn_id)]
        if len(turn_ids) > TURNS_BY_ID_MAX:
            stored = set(await self._store.ids(MemoryFilter(user_id, status=MemoryStatus.RAW)))
            return [row_id for row_id in ids if row_id in stored]
        found: list[str] = []
        for batch in batched(ids, ROWS_AT_ONCE):
            found += [row.id for row in await self._store.memories(user_id, batch)]
            await held.renew()
        return found

    async def _recorded(self, user_id: str, held: LedgerWrite) -> AsyncIterator[list[Memory]]:
        """What was said, as rows, from the record, which the rows come and go with: the store would take far longer.

        A row may have another id than the stored one, or may not be stored, but is of the same turn.
        """
        turns: list[Turn] = []
        async for turn in self._turn_log.turns(user_id):
            turns.append(turn)
            if len(turns) == TURNS_AT_ONCE:
                yield _rows(turns)
                turns = []
                await held.renew()
        yield _rows(turns)


def _rows(turns: Sequence[Turn]) -> list[Memory]:
    own = [(turn, one.content) for turn in turns for one in turn.messages if one.role == Role.USER]
    rows = [row for turn, message in own for row in rows_of(turn, [message])]
    answers = [row for turn in turns for row in answer_rows_of(turn, turn.answer)]
    return [*rows, *(replace(row, content=one) for row in answers for one in passages_of(row.content))]


def _is_answer(row: Memory) -> bool:
    return row.source == ANSWERED


def _said(forgotten: Sequence[Memory]) -> set[str]:
    contents = {one.content for one in forgotten if one.status is not MemoryStatus.RAW}
    own = [one for one in forgotten if not _is_answer(one)]  # an answer quotes the question that it replies to
    of_user = {quoted.words for one in own for quoted in all_evidence(one) if quoted.role == Role.USER}
    return contents | {quote for quote in of_user if is_distinctive(quote)}


def _turns_of(rows: Sequence[Memory], says: Callable[[str], bool]) -> set[str]:
    return {quoted.turn_id for row in rows if says(row.content) for quoted in row.evidence}


def _bare(statement: str) -> str:
    said = folded(statement).casefold()
    return said.strip("".join({one for one in said if not one.isalnum()}))
