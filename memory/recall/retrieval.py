"""Stage 8: the memories that may bear on a query, out of the user's scope, best first. Knows the store as a port.

Whatever a store returned, nothing of another user or project leaves this stage: the scope is checked here once more.
"""

from __future__ import annotations

from memory.model import Candidate, RequestOptions, Scope, Vector
from memory.ports import MemoryFilter, MemoryStore

CANDIDATES_MAX = 200  # the ranking sees no more; REST may ask for as many


def filter_of(scope: Scope, options: RequestOptions) -> MemoryFilter:
    """What this scope may see: its user; within a given project (agent) that one's and the general ones."""
    return MemoryFilter(
        user_id=scope.user_id,
        project_id=scope.project_id,
        agent_id=scope.agent_id,
        memory_types=options.memory_types,
    )


async def retrieve(
    store: MemoryStore, scope: Scope, vector: Vector, options: RequestOptions, *, limit: int = CANDIDATES_MAX
) -> list[Candidate]:
    """Candidates by cosine, best first. Raises `Unavailable`."""
    where = filter_of(scope, options)
    found = await store.search(where, vector, limit=limit)
    return [candidate for candidate in found if _belongs(candidate, where)]


def _belongs(candidate: Candidate, where: MemoryFilter) -> bool:
    memory = candidate.memory
    return (
        memory.user_id == where.user_id
        and (not where.project_id or memory.project_id in ("", where.project_id))
        and (not where.agent_id or memory.agent_id in ("", where.agent_id))
    )
