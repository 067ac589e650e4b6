"""Finds the memories that new claims may repeat or change: the rows that consolidation compares.

For a user with few memories these are all of them; otherwise those with the same statement and those nearby, by vector
and by words. If a claim is older than a stored memory (it is learnt late), superseded rows are included: one of them
may already have replaced the claim. The number of store calls is constant. Nothing is decided here: consolidation
compares fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from memory.language import content_words
from memory.learn.closeness import embedded_by
from memory.learn.consolidation import stood_until
from memory.learn.feedback import Confirmation
from memory.model import Claim, MemoryStatus, Record, Vector, statement_key
from memory.ports import MemoryBank, MemoryFilter, MemoryLookup

ALL_MAX = 300  # of one project: up to so many are all returned
FOUND_MAX = 600  # rows that one search may return for a whole window: 2 MB
FOUND_OF_ONE_MIN, FOUND_OF_ONE_MAX = 6, 60  # nearest rows per text
WORDS_OF_ONE_MAX, WORDS_MAX = 12, 60  # each is searched in all contents: 1 ms for 20,000 rows
ANSWER_LINES_MAX = 12  # of confirmed answers
TEXTS_MAX = 60  # texts of a window for which neighbours are searched


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The search within one project: by statement key, by vector, and by vector among rows with one of the words.

    `since`: when the first of the claims was said, in Unix seconds.
    """

    since: float
    keys: Sequence[str]
    texts: Sequence[str]
    words: Sequence[str]


class NeighbourSearch:
    """Stateless. Raises `Unavailable`."""

    def __init__(self, memories: MemoryBank) -> None:
        self._memories = memories
        self._embedded = embedded_by(memories.embedder)

    async def find(
        self,
        user_id: str,
        claims: Sequence[Claim],
        confirmations: Sequence[Confirmation] = (),
        *,
        vectors: Mapping[str, Vector],
        revision: int | None = None,
    ) -> list[Record]:
        """Active rows, and superseded ones for claims that are learnt late, each once.

        `vectors`: known vectors by text; missing ones are embedded if needed. `revision`: the user's revision, if
        nobody is writing; local memories of that revision are then used instead of the store.
        """
        projects = {c.scope.project_id for c in claims} | {c.scope.project_id for c in confirmations}
        wanted = {
            project_id: _wanted(
                [claim for claim in claims if claim.scope.project_id == project_id],
                [one for one in confirmations if one.scope.project_id == project_id],
            )
            for project_id in projects
        }
        texts = dict.fromkeys(text for one in wanted.values() for text in one.texts)
        known = {**vectors, **await self._embedded([text for text in texts if text not in vectors])}
        at_hand = await self._memories.local_memories.as_of(user_id, revision) if revision is not None else None
        found: dict[str, Record] = {}
        for project_id, one in wanted.items():
            where = MemoryFilter(user_id, project_id=project_id, exact_project=True)
            rows = await _found(at_hand or self._memories.store, where, one, known)
            found |= {record.memory.id: record for record in rows}
        return list(found.values())


async def _found(
    memories: MemoryLookup, where: MemoryFilter, wanted: _Wanted, vectors: Mapping[str, Vector]
) -> list[Record]:
    if not wanted.texts:
        return []
    active = await _of_status(memories, where, wanted, vectors)
    if all(record.memory.said_at <= wanted.since for record in active):
        return active  # what is superseded now was superseded before the claims were made
    superseded = await _of_status(memories, replace(where, status=MemoryStatus.SUPERSEDED), wanted, vectors)
    return [*active, *(record for record in superseded if stood_until(record.memory) >= wanted.since)]


async def _of_status(
    memories: MemoryLookup, where: MemoryFilter, wanted: _Wanted, vectors: Mapping[str, Vector]
) -> list[Record]:
    everything = await memories.load_few(where, most=ALL_MAX)
    if everything is not None:
        return everything
    found = await _near(memories, where, wanted, vectors)
    for key in wanted.keys:
        same = await memories.same_statement(where, key)
        if same is not None:
            found.append(same)
    return found


async def _near(
    memories: MemoryLookup, where: MemoryFilter, wanted: _Wanted, vectors: Mapping[str, Vector]
) -> list[Record]:
    """By vector among all rows, and again among those that share a word, which may be distant by vector."""
    matrix = np.stack([vectors[text] for text in wanted.texts])
    limit = max(FOUND_OF_ONE_MIN, min(FOUND_OF_ONE_MAX, FOUND_MAX // len(wanted.texts)))
    found = await memories.nearest(where, matrix, limit=limit)
    if wanted.words:
        found += await memories.nearest(where, matrix, limit=limit, words=wanted.words)
    return found


def _wanted(claims: Sequence[Claim], confirmations: Sequence[Confirmation]) -> _Wanted:
    lines = [line for one in confirmations for line in one.answer.splitlines() if line.strip()][:ANSWER_LINES_MAX]
    texts = list(dict.fromkeys((*lines, *(claim.text for claim in claims))))[:TEXTS_MAX]
    words = dict.fromkeys(word for text in texts for word in _words(text))
    keys = list(dict.fromkeys(statement_key(claim.text) for claim in claims))
    since = min((claim.said_at for claim in claims), default=inf)
    return _Wanted(since, keys, texts, list(words)[:WORDS_MAX])


def _words(text: str) -> list[str]:
    """The longest words, which are the rarest; single letters and digits occur everywhere."""
    telling = [word for word in content_words(text) if word.isalnum() and (len(word) > 1 or not word.isascii())]
    return sorted(telling, key=lambda word: (-len(word), word))[:WORDS_OF_ONE_MAX]
