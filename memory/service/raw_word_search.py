"""Finds the rows with raw words that have to go with forgotten memories. Reads the store, and deletes nothing.

These are the rows of the turns that a memory quotes, or quoted, and of those that say the same: a memory that was said
often quotes only the first and the latest of its turns. A turn goes as a whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memory.language.word_boundaries import whole_word_positions
from memory.model import Evidence, Memory, MemoryStatus, Role
from memory.model.exchanges import folded, is_distinctive
from memory.model.raw_words import raw_row_ids
from memory.model.withdrawn import withdrawn_evidence
from memory.ports import LedgerWrite, MemoryFilter, MemoryStore
from memory.service.memory_scan import scanned

# Characters at a statement's beginning by which it is looked up, the longest that it has: few begin alike.
BEGINNINGS = (16, 3)


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
    """`row_ids`: the rows. `turn_ids`: the turns that the memories or these rows are from."""

    row_ids: tuple[str, ...] = ()
    turn_ids: tuple[str, ...] = ()


class RawWordSearch:
    """Raises `Unavailable`, and `Conflict` if the lock was lost meanwhile."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def of_memories(self, user_id: str, forgotten: Sequence[Memory], held: LedgerWrite) -> FoundWords:
        """Of the turns that these memories rest on, and of those that say the same."""
        turns = {quoted.turn_id for quoted in quotes(forgotten) if quoted.turn_id}
        said = Statements(_said(forgotten))
        if not said:
            rows = await self.of_turns(user_id, turns)
            return FoundWords(tuple(row.id for row in rows), tuple(sorted(turns)))
        row_ids: dict[str, list[str]] = {}  # of all turns
        async for rows in scanned(self._store, MemoryFilter(user_id, status=MemoryStatus.RAW), held=held):
            turns |= await asyncio.to_thread(_turns_saying, said, rows)  # may take long; the loop must not wait
            for row in rows:
                for quoted in row.evidence:
                    row_ids.setdefault(quoted.turn_id, []).append(row.id)
        found = (row_id for turn_id in sorted(turns) for row_id in row_ids.get(turn_id, ()))
        return FoundWords(tuple(dict.fromkeys(found)), tuple(sorted(turns)))

    async def of_turns(self, user_id: str, turn_ids: Collection[str]) -> list[Memory]:
        """The rows of these turns, found by their ids."""
        return await self._store.memories(user_id, [one for t in sorted(turn_ids) for one in raw_row_ids(user_id, t)])


def quotes(memories: Iterable[Memory]) -> list[Evidence]:
    """What they rest on, and what they rested on before a branch was abandoned."""
    return [quoted for one in memories for quoted in (*one.evidence, *withdrawn_evidence(one))]


def _said(forgotten: Sequence[Memory]) -> set[str]:
    contents = {one.content for one in forgotten if one.status is not MemoryStatus.RAW}
    of_user = {quoted.quote for quoted in quotes(forgotten) if quoted.role == Role.USER}
    return contents | {quote for quote in of_user if is_distinctive(quote)}


def _turns_saying(statements: Statements, rows: Sequence[Memory]) -> set[str]:
    saying = (row for row in rows if statements.are_in(row.content))
    return {quoted.turn_id for row in saying for quoted in row.evidence}


def _bare(statement: str) -> str:
    said = folded(statement).casefold()
    return said.strip("".join({one for one in said if not one.isalnum()}))


__all__ = ["FoundWords", "RawWordSearch", "Statements", "quotes"]
