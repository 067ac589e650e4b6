"""The memories that new facts may say again or change: which of a user's rows consolidation gets to see.

Of a user with few memories all of them. Of one with many: those that say the same, the latest ones, and what is found
near, by vector and by words – near the fact, near the phrases by which people tell the attribute that it speaks of ("I
moved to Oslo" and "I live in Rome" are not very near), and near what an answer said that the user speaks of. However
many there are, it costs the same few calls. It must never decide anything: nearness proposes, consolidation's rules
choose.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memory.learn.changes.supersession import may_change
from memory.learn.corrections.feedback import Feedback, spoken_of
from memory.learn.facts import Fact
from memory.learn.words.attributes import phrases_of
from memory.learn.words.terms import terms
from memory.model import Record, Role, Vector, statement_key
from memory.ports import MemoryFilter, MemoryStore

ALL_MAX = 300  # of one project: so few are all looked at; comparing a fact with one takes 0.15 ms
FOUND_MAX = 600  # rows that one search may bring, for a whole window: 2 MB
# Near one text or phrase. Among 20,000 statements, each with eight near copies, 150 found all 48 that our evaluation
# sets change, and 40 all but one.
FOUND_OF_ONE_MIN, FOUND_OF_ONE_MAX = 6, 150
LATEST_MAX, LATEST_SECONDS = 100, 86_400.0
PHRASES_OF_ONE_MAX = 14  # of a fact: two attributes in all their wordings
WORDS_OF_ONE_MAX, WORDS_MAX = 12, 60  # each is looked for in all contents: 1 ms for 20,000 of them
SENTENCES_MAX = 12  # of answers that the user speaks of
TEXTS_MAX, PHRASES_MAX = 60, 40  # of a window, near which is looked
HISTORY_SECONDS = 3_600.0  # said so long before being learnt: it may be older than what is known by now

Embedded = Callable[[Sequence[str]], Awaitable[dict[str, Vector]]]
"""Vectors by text. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is looked for in one project: near texts and phrases, among all and among what holds one of the words."""

    keys: Sequence[str]
    texts: Sequence[str]
    phrases: Sequence[str]
    words: Sequence[str]


class Neighbours:
    """Remembers nothing but the vectors of the phrases, which never change. Raises `Unavailable`."""

    def __init__(self, *, store: MemoryStore, embedded: Embedded) -> None:
        self._store = store
        self._embedded = embedded
        self._phrases: dict[str, Vector] = {}

    async def of(
        self,
        user_id: str,
        facts: Sequence[Fact],
        said_back: Sequence[Feedback] = (),
        *,
        now: float,
        vectors: Mapping[str, Vector],
        looks_back: bool = False,
    ) -> list[Record]:
        """Active rows, each once. `vectors`: by text, as far as they are known; the rest is embedded if it is needed.

        `looks_back`: for every fact, not only for those that may change something by their words.
        """
        found: dict[str, Record] = {}
        for project_id in {one.scope.project_id for one in facts} | {one.scope.project_id for one in said_back}:
            wanted = _wanted(
                [fact for fact in facts if fact.scope.project_id == project_id],
                [
                    fact
                    for fact in facts
                    if fact.scope.project_id == project_id and (looks_back or _looks_back(fact, now))
                ],
                [back for back in said_back if back.scope.project_id == project_id],
            )
            where = MemoryFilter(user_id, project_id=project_id, exact_project=True)
            found |= {record.memory.id: record for record in await self._found(where, wanted, now, vectors)}
        return list(found.values())

    async def _found(
        self, where: MemoryFilter, wanted: _Wanted, now: float, vectors: Mapping[str, Vector]
    ) -> list[Record]:
        found: list[Record] = []
        if wanted.texts:
            everything = await self._store.load_few(where, most=ALL_MAX)
            if everything is not None:
                return everything
            found += await self._near(where, wanted, vectors)
            found += await self._store.load(replace(where, created_after=now - LATEST_SECONDS), limit=LATEST_MAX)
        for key in wanted.keys:
            same = await self._store.same_statement(where, key)
            if same is not None:
                found.append(same)
        return found

    async def _near(self, where: MemoryFilter, wanted: _Wanted, vectors: Mapping[str, Vector]) -> list[Record]:
        """Among all, and once more among those that share a word: what shares one may be far by its vector."""
        known = {**vectors, **self._phrases}
        asked = list(dict.fromkeys((*wanted.texts, *wanted.phrases)))
        if missing := [text for text in asked if text not in known]:
            known |= await self._embedded(missing)
        self._phrases |= {phrase: known[phrase] for phrase in wanted.phrases}
        matrix = np.stack([known[text] for text in asked])
        limit = max(FOUND_OF_ONE_MIN, min(FOUND_OF_ONE_MAX, FOUND_MAX // len(asked)))
        found = await self._store.nearest(where, matrix, limit=limit)
        if wanted.words:
            found += await self._store.nearest(where, matrix, limit=limit, words=wanted.words)
        return found


def _wanted(facts: Sequence[Fact], looking_back: Sequence[Fact], said_back: Sequence[Feedback]) -> _Wanted:
    told = [sentence for back in said_back for sentence in spoken_of(back)][:SENTENCES_MAX]
    asked = [fact.evidence.quote for fact in looking_back if fact.evidence.role == Role.ASSISTANT]
    texts = list(dict.fromkeys((*told, *asked, *(fact.content for fact in looking_back))))[:TEXTS_MAX]
    phrases = [phrase for text in texts for phrase in phrases_of(text, most=PHRASES_OF_ONE_MAX)]
    unique = list(dict.fromkeys(phrases))[:PHRASES_MAX]
    words = dict.fromkeys(word for text in (*texts, *unique) for word in _words(text))
    keys = list(dict.fromkeys(statement_key(fact.content) for fact in facts))
    return _Wanted(keys, texts, unique, list(words)[:WORDS_MAX])


def _words(text: str) -> list[str]:
    """The longest, which are the rarest; a single letter or digit stands everywhere."""
    telling = [word for word in terms(text) if word.isalnum() and (len(word) > 1 or not word.isascii())]
    return sorted(telling, key=lambda word: (-len(word), word))[:WORDS_OF_ONE_MAX]


def _looks_back(fact: Fact, now: float) -> bool:
    """Whether earlier memories have to be looked at, beyond the one that says the same."""
    is_confirmation = fact.evidence.role == Role.ASSISTANT  # may have asked for what it was told
    return is_confirmation or may_change(fact.content) or fact.said_at < now - HISTORY_SECONDS


__all__ = ["ALL_MAX", "FOUND_MAX", "LATEST_MAX", "Neighbours"]
