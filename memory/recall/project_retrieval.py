"""Stage 8 for requests with a shared project: the user's own memories and those of the project, in one ranking.

The project's set never makes a request fail or late: without it, the user's own memories are found as ever. Memories
that the user may not read never leave this stage, whatever store or working set returned.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace

from memory.errors import Unavailable
from memory.model import Question, Scope, Vector
from memory.model.projects import ProjectAccess
from memory.ports import MemoryStore, Revision
from memory.recall.project_access import ReadableProjects
from memory.recall.ranking.features import TextFeatures
from memory.recall.ranking.merging import merged, only
from memory.recall.ranking.ranking import Ranked
from memory.recall.ranking.weights import DEFAULT_RANKING, RankingWeights
from memory.recall.retrieval import Corpora, Prefetch, Retrieval


class ProjectRetrieval(Retrieval):
    """`Retrieval` over two sets."""

    def __init__(
        self,
        *,
        corpora: Corpora,
        store: MemoryStore,
        projects: ReadableProjects,
        ranking: RankingWeights = DEFAULT_RANKING,
    ) -> None:
        super().__init__(corpora=corpora, store=store, ranking=ranking)
        self._projects = projects
        self._bar = ranking.bar

    def prefetch(self, scope: Scope, revision: Revision | None = None) -> Prefetch:
        """Also loads the project's set, if the user was seen in it a moment ago."""
        prefetch = super().prefetch(scope, revision)
        access = self._projects.glance(scope)
        prefetch.of_project = None if access is None else super().prefetch(access.scope())
        return prefetch

    async def ranked(
        self,
        asked: Question,
        vector: Vector,
        *,
        waits: bool = False,
        prefetch: Prefetch | None = None,
        seconds: float = math.inf,
        reading: TextFeatures | None = None,
    ) -> Ranked:
        access = await self._access(asked.scope)
        own = super().ranked(asked, vector, waits=waits, prefetch=prefetch, seconds=seconds, reading=reading)
        if access is None:
            return await own
        of_project = prefetch.of_project if prefetch is not None else None
        found, shared = await asyncio.gather(
            own,
            super().ranked(_within(asked, access), vector, waits=waits, prefetch=of_project, seconds=seconds),
            return_exceptions=True,
        )
        return await self._merged(asked, access, found, shared)

    async def ranked_as_of(self, asked: Question, vector: Vector) -> Ranked:
        own, access = await super().ranked_as_of(asked, vector), await self._access(asked.scope)
        if access is None:
            return own
        shared = await super().ranked_as_of(_within(asked, access), vector)
        return await self._merged(asked, access, own, shared)

    async def _access(self, scope: Scope) -> ProjectAccess | None:
        try:
            return await self._projects.access(scope)
        except Unavailable:  # nobody can say what may be read: then nothing but the user's own
            return None

    async def _merged(
        self, asked: Question, access: ProjectAccess, own: Ranked | BaseException, shared: Ranked | BaseException
    ) -> Ranked:
        if isinstance(own, BaseException):
            raise own
        if isinstance(shared, Unavailable):
            return own
        if isinstance(shared, BaseException):
            raise shared
        try:
            readable = await self._projects.readable(asked.scope.user_id, access, shared.candidates)
        except Unavailable:
            return own
        return merged(own, only(shared, readable), bar=self._bar)


def _within(asked: Question, access: ProjectAccess) -> Question:
    return replace(asked, scope=access.scope(asked.scope.agent_id))
