"""Retrieval: scores the memories relevant to a query, in the user's working set or, without one, in the store.

The scope is checked again: memories of another user or project never leave this stage, whatever the store returned.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np

from memory.errors import Busy, Unavailable
from memory.model import Candidate, MemoryStatus, Question, Record, Scope, Vector
from memory.model.recalled import AskedWhole
from memory.ports import MemoryFilter, MemoryStore, Revision
from memory.recall.project_access import ReadableProjects
from memory.recall.ranking.combining import merged, only
from memory.recall.ranking.corpus import Corpus
from memory.recall.ranking.ranking import (
    CANDIDATES_MAX,
    WHOLE_EXAMINED_MAX,
    Ranked,
    overview,
    overview_of,
    rank,
    rank_found,
    read_ahead,
    rows_with_claim,
)
from memory.recall.ranking.weights import DEFAULT_RANKING, RankingWeights
from memory.recall.working_set.working_set import Prefetch
from memory.recall.working_set.working_sets import WorkingSets
from memory.service.profile_layout import by_importance

EXAMINED_MEMORIES_MAX = 20_000  # one by one: of an earlier time, or by their claims where no set is loaded; the newest
COMPARISONS_MAX = 3  # of all claims of a set that is changed meanwhile; then the store is asked
CHAT_CANDIDATES_MAX = 80  # for a chat: twice what fits into a note; each occupies the event loop for 0.1 ms
CHAT_FOUND_MAX = 32  # the same without a working set: as many lines as a note holds; reading one off takes 0.1 ms more
WAITING_EXAMINED_MAX = 1_000  # memories of a set, for an overview that no chat waits for
WHOLE_FOUND_MAX = 100  # the newest, where a whole is asked about and no set is loaded
CHAT_SEARCHES_MAX = 4  # concurrent searches of the store: Milvus Lite takes 20 ms for each, one after another


class Retrieval:
    """Finds candidates for a query in the working set or in the store, and likewise in those of a shared project.

    The project's set never makes a request fail or late: without it, the user's own memories are found as ever.
    """

    def __init__(
        self,
        *,
        corpora: WorkingSets,
        store: MemoryStore,
        projects: ReadableProjects,
        ranking: RankingWeights = DEFAULT_RANKING,
    ) -> None:
        self._corpora = corpora
        self._store = store
        self._projects = projects
        self._ranking = ranking
        self._chat_searches = 0

    def prefetch(self, scope: Scope, revision: Revision | None = None) -> Prefetch:
        """For `ranked`, while the query is embedded; of the project too, if the user was seen in it a moment ago."""
        prefetch = self._corpora.prefetch(scope.user_id, revision)
        access = self._projects.glance(scope)
        prefetch.of_project = None if access is None else self._corpora.prefetch(access.scope().user_id)
        return prefetch

    async def read_ahead(self, asked: Question, prefetch: Prefetch) -> None:
        """Add the features of the query's words to it, while the query is being embedded."""
        corpus = await self._corpora.corpus(asked.scope.user_id, prefetch=prefetch)
        prefetch.reading = None if corpus is None else read_ahead(corpus, asked)

    async def ranked(
        self,
        asked: Question,
        vector: Vector,
        *,
        waits: bool = False,
        prefetch: Prefetch | None = None,
        seconds: float = math.inf,
    ) -> Ranked:
        """The best candidates with every part of their score. Raises `Unavailable` without set and store, and `Busy`.

        `waits`: for callers other than chats, who alone ask for claims: load a missing set first and examine more
        candidates. A chat waits at most `seconds`.
        """
        of_project = None if prefetch is None else prefetch.of_project

        def search(question: Question) -> Awaitable[Ranked]:
            prepared = prefetch if question is asked else of_project
            return self._ranked(question, vector, waits=waits, prefetch=prepared, seconds=seconds)

        return await self._with_project(asked, search)

    async def _with_project(self, asked: Question, search: Callable[[Question], Awaitable[Ranked]]) -> Ranked:
        """The search in the user's scope, merged with the same in their project's."""
        try:
            access = await self._projects.access(asked.scope)
        except Unavailable:  # nobody can say what may be read: then nothing but the user's own
            access = None
        if access is None:
            return await search(asked)
        shared = replace(asked, scope=access.scope(asked.scope.agent_id))
        own, of_project = await asyncio.gather(search(asked), search(shared), return_exceptions=True)
        if isinstance(own, BaseException):
            raise own
        if isinstance(of_project, Unavailable):
            return own
        if isinstance(of_project, BaseException):
            raise of_project
        try:
            readable = await self._projects.readable(asked.scope.user_id, access, of_project.candidates)
        except Unavailable:
            return own
        return merged(own, only(of_project, readable), bar=self._ranking.bar)

    async def _ranked(
        self, asked: Question, vector: Vector, *, waits: bool, prefetch: Prefetch | None, seconds: float
    ) -> Ranked:
        """In one scope."""
        if not asked.claim.is_any:
            return await self._ranked_with_claim(asked, vector)
        limit = CANDIDATES_MAX if waits else CHAT_CANDIDATES_MAX
        corpus = await self._corpora.corpus(asked.scope.user_id, waits=waits, prefetch=prefetch, seconds=seconds)
        if corpus is not None:
            if asked.whole is not None:
                return overview(
                    corpus, asked, limit=limit, examined=WAITING_EXAMINED_MAX if waits else WHOLE_EXAMINED_MAX
                )
            reading = None if prefetch is None else prefetch.reading
            return rank(corpus, asked, vector, ranking=self._ranking, limit=limit, reading=reading)
        where = filter_of(asked)
        with nullcontext() if waits else self._room_in_the_store():
            if asked.whole is not None:
                page = await self._store.page(where, limit=WHOLE_FOUND_MAX, cursor="")
                return overview_of(by_importance(page.items, now=asked.now)[:limit])
            found = await self._store.search(where, vector, limit=limit if waits else CHAT_FOUND_MAX)
        mine = [candidate for candidate in found if _belongs(candidate, where)]
        if waits:
            return await asyncio.to_thread(rank_found, mine, asked, ranking=self._ranking)
        return rank_found(mine, asked, ranking=self._ranking)  # of few: a thread would wait for its turn, and cost more

    async def _ranked_with_claim(self, asked: Question, vector: Vector) -> Ranked:
        """For callers other than chats: claims are compared one by one, in a thread, while the set may be changed."""
        user_id = asked.scope.user_id
        corpus = await self._corpora.corpus(user_id, waits=True)
        for _ in range(COMPARISONS_MAX):
            if corpus is None:
                break
            layout = corpus.prepare()
            claimed = await asyncio.to_thread(rows_with_claim, layout, asked.claim)
            corpus = await self._corpora.corpus(user_id, waits=True)
            if corpus is not None and corpus.prepare() is layout:
                reading = read_ahead(corpus, asked, claimed=claimed)
                return rank(corpus, asked, vector, ranking=self._ranking, reading=reading)
        records = await self._store.load(replace(filter_of(asked), memory_types=()), limit=EXAMINED_MEMORIES_MAX)
        return await self._ranked_among(records, asked, vector)

    @contextmanager
    def _room_in_the_store(self) -> Iterator[None]:
        """Raises `Busy` beyond `CHAT_SEARCHES_MAX`: one more search would be late, and delay the others."""
        if self._chat_searches >= CHAT_SEARCHES_MAX:
            raise Busy("milvus", f"{self._chat_searches} searches are under way")
        self._chat_searches += 1
        try:
            with self._corpora.searching():
                yield
        finally:
            self._chat_searches -= 1

    async def said(self, where: MemoryFilter, vector: Vector, *, limit: int) -> list[Candidate]:
        """What was said, nearest first, for a chat: it is in no set, so the store is searched. Raises `Unavailable`."""
        with self._room_in_the_store():
            found = await self._store.search(where, vector, limit=limit)
        return [candidate for candidate in found if _belongs(candidate, where)]

    async def ranked_as_of(self, asked: Question, vector: Vector) -> Ranked:
        """The same over what was known and held true when the question was asked. Raises `Unavailable`."""
        return await self._with_project(asked, partial(self._ranked_as_of, vector=vector))

    async def _ranked_as_of(self, asked: Question, vector: Vector) -> Ranked:
        everything = replace(filter_of(asked), status=None, with_archived=False)
        records = await self._store.load(everything, limit=EXAMINED_MEMORIES_MAX)
        known = (
            Record(replace(record.memory, status=MemoryStatus.ACTIVE), record.vector)
            for record in records
            if record.memory.status_at(asked.now) is MemoryStatus.ACTIVE
        )
        return await self._ranked_among(known, asked, vector)

    async def _ranked_among(self, records: Iterable[Record], asked: Question, vector: Vector) -> Ranked:
        def ranked() -> Ranked:
            corpus = Corpus(records, dimension=int(np.shape(vector)[0]))
            if asked.whole is not None and asked.claim.is_any:
                return overview(corpus, asked, limit=CANDIDATES_MAX, examined=EXAMINED_MEMORIES_MAX)
            return rank(corpus, asked, vector, ranking=self._ranking)

        return await asyncio.to_thread(ranked)  # takes seconds for the largest number of memories


def filter_of(asked: Question) -> MemoryFilter:
    """What its scope may see; of a question about the project as a whole, only what is of that one."""
    scope, is_of_project = asked.scope, asked.whole is AskedWhole.PROJECT
    ids = (scope.user_id, scope.project_id, scope.agent_id)
    return MemoryFilter(*ids, memory_types=asked.memory_types, exact_project=is_of_project)


def _belongs(candidate: Candidate, where: MemoryFilter) -> bool:
    memory = candidate.memory
    return (
        memory.user_id == where.user_id
        and (not where.project_id or memory.project_id in ("", where.project_id))
        and (not where.agent_id or memory.agent_id in ("", where.agent_id))
    )
