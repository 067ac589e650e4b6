"""Stage 8: score the memories that may bear on a query, in the user's working set or, without one, in the store.

Whatever a store returned, nothing of another user or project leaves this stage: the scope is checked here once more.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from memory.errors import Busy
from memory.model import Candidate, MemoryStatus, Question, Record, Scope, Vector
from memory.ports import MemoryFilter, MemoryStore
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import CANDIDATES_MAX, Ranked, Reading, rank, rank_found, read_ahead
from memory.recall.ranking.weights import DEFAULT_RANKING, RankingSettings

AS_OF_MEMORIES_MAX = 20_000  # looked through for a question about the state of knowledge at some time
CHAT_CANDIDATES_MAX = 80  # for a chat: twice what a note has room for; each holds the loop for 0.1 ms
CHAT_SEARCHES_MAX = 4  # in the store at a time: Milvus Lite takes 20 ms for each, one after another


@dataclass(slots=True, eq=False)
class Expected:
    """What `Corpora.expect` returns: meanwhile, `task` looks after the user's set.

    `written`: what has to be in it, as the ledger counts; None while the ledger has not said.
    """

    task: asyncio.Task[None] = field(init=False)
    written: int | None = None


class Corpora(Protocol):
    """Where loaded working sets come from."""

    def searching(self) -> AbstractContextManager[None]:
        """The store is searched for a chat that got no corpus here: nothing else may keep the store busy meanwhile."""
        ...

    def expect(self, user_id: str) -> Expected:
        """A request of this user has come: find out meanwhile what was written before it."""
        ...

    async def corpus(
        self, user_id: str, *, waits: bool = False, expected: Expected | None = None, seconds: float = math.inf
    ) -> Corpus | None:
        """All memories of the user as of now, or of `expected`; None while they are not loaded, or might be older.

        A chat waits `seconds` at most. To be used before the next await. Never raises.
        """
        ...


class Retrieval:
    """Candidates for a query, from wherever they are found soonest."""

    def __init__(self, *, corpora: Corpora, store: MemoryStore, ranking: RankingSettings = DEFAULT_RANKING) -> None:
        self._corpora = corpora
        self._store = store
        self._ranking = ranking
        self._chat_searches = 0

    def expect(self, scope: Scope) -> Expected:
        """Get ready for `ranked`, which takes what this returns, while the query is being embedded."""
        return self._corpora.expect(scope.user_id)

    async def read_ahead(self, asked: Question, expected: Expected) -> Reading | None:
        """What the words of the query say, for `ranked`, while its vector is being made. None without a set."""
        corpus = await self._corpora.corpus(asked.scope.user_id, expected=expected)
        return None if corpus is None else read_ahead(corpus, asked, ranking=self._ranking)

    async def ranked(
        self,
        asked: Question,
        vector: Vector,
        *,
        waits: bool = False,
        expected: Expected | None = None,
        seconds: float = math.inf,
        reading: Reading | None = None,
    ) -> Ranked:
        """The best candidates with every part of their score. Raises `Unavailable` without set and store, and `Busy`.

        `waits`: no chat waits for this, so a set that is not there is loaded first, and more candidates are looked at.
        A chat waits `seconds` at most for its set.
        `reading`: what `read_ahead` returned for the same question.
        """
        limit = CANDIDATES_MAX if waits else CHAT_CANDIDATES_MAX
        corpus = await self._corpora.corpus(asked.scope.user_id, waits=waits, expected=expected, seconds=seconds)
        if corpus is not None:
            return rank(corpus, asked, vector, ranking=self._ranking, limit=limit, reading=reading)
        where = filter_of(asked)
        with nullcontext() if waits else self._room_in_the_store():
            found = await self._store.search(where, vector, limit=limit)
        mine = [candidate for candidate in found if _belongs(candidate, where)]
        return await asyncio.to_thread(rank_found, mine, asked, ranking=self._ranking)

    @contextmanager
    def _room_in_the_store(self) -> Iterator[None]:
        """One more would come too late, and make the others late, too."""
        if self._chat_searches >= CHAT_SEARCHES_MAX:
            raise Busy("milvus", f"{self._chat_searches} searches are under way")
        self._chat_searches += 1
        try:
            with self._corpora.searching():
                yield
        finally:
            self._chat_searches -= 1

    async def ranked_as_of(self, asked: Question, vector: Vector) -> Ranked:
        """The same, with what was known and held true when it was asked. Raises `Unavailable`."""
        everything = replace(filter_of(asked), status=None, with_archived=False)
        records = await self._store.load(everything, limit=AS_OF_MEMORIES_MAX)

        def ranked() -> Ranked:
            known = [
                Record(replace(record.memory, status=MemoryStatus.ACTIVE), record.vector)
                for record in records
                if record.memory.status_at(asked.now) is MemoryStatus.ACTIVE
            ]
            corpus = Corpus(known, dimension=int(np.shape(vector)[0]), neighbours=self._ranking.neighbours)
            return rank(corpus, asked, vector, ranking=self._ranking)

        return await asyncio.to_thread(ranked)  # seconds of work, with as many memories as there may be


def filter_of(asked: Question) -> MemoryFilter:
    """What its scope may see: its user; within a given project (agent) that one's and the general ones."""
    return MemoryFilter(
        user_id=asked.scope.user_id,
        project_id=asked.scope.project_id,
        agent_id=asked.scope.agent_id,
        memory_types=asked.memory_types,
    )


def _belongs(candidate: Candidate, where: MemoryFilter) -> bool:
    memory = candidate.memory
    return (
        memory.user_id == where.user_id
        and (not where.project_id or memory.project_id in ("", where.project_id))
        and (not where.agent_id or memory.agent_id in ("", where.agent_id))
    )
