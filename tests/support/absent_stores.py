"""Stores of requests for parts that need few of them: the others hold nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from memory.model import Profile, ProfileLine
from memory.model.erasures import ErasureRecord, ErasureRequest
from memory.model.projects import Invitation, ProjectAccess, ProjectMember, ProjectRole, SharedMemory, SharedProject
from memory.ports import (
    ChatState,
    ChatStateQuery,
    ChatStates,
    CompactedStates,
    NoOptOuts,
    NoSummaries,
    NoteBook,
    OptOuts,
    Profiles,
    Receipts,
    RequestStores,
    UsageCounts,
)
from memory.ports.erasures import Erasures
from memory.ports.idempotency import IdempotencyKeys, KeyClaim
from memory.ports.projects import Projects
from memory.ports.summaries import SessionSummaries


class NoProfiles:
    """`Profiles` of a deployment that builds none."""

    async def get(self, user_id: str, project_ids: Collection[str]) -> dict[str, Profile]:
        return {}

    async def all(self, user_id: str) -> list[Profile]:
        return []

    async def put(self, user_id: str, lines: Mapping[str, Sequence[ProfileLine]], *, revision: int, now: float) -> bool:
        return True

    async def set_own(
        self,
        user_id: str,
        project_id: str,
        *,
        pinned: Sequence[ProfileLine] | None = None,
        is_enabled: bool | None = None,
        now: float,
    ) -> None:
        return None

    async def drop(self, user_id: str, memory_ids: Collection[str], *, now: float) -> None:
        return None

    async def erase(self, user_id: str, project_id: str = "") -> None:
        return None

    async def stale(self, *, limit: int) -> list[str]:
        return []

    async def is_stale(self, user_id: str) -> bool:
        return False


class NoProjects:
    """`Projects` where nothing can be shared."""

    async def create(self, project: SharedProject, owner_id: str) -> bool:
        raise AssertionError("projects cannot be shared here")

    async def access(self, user_id: str, project_id: str) -> ProjectAccess | None:
        return None

    async def access_by_key(self, key: str, user_id: str) -> ProjectAccess | None:
        return None

    async def joined(self, user_id: str) -> list[ProjectAccess]:
        return []

    async def count_chosen(self, user_id: str) -> int:
        return 0

    async def members(self, key: str) -> list[ProjectMember]:
        return []

    async def set_roles(self, key: str, roles: Mapping[str, ProjectRole | None], *, at: float) -> None:
        return None

    async def invite(self, invitation: Invitation) -> None:
        return None

    async def invitations(self, key: str) -> list[Invitation]:
        return []

    async def invited(self, user_id: str, *, by: str = "", limit: int) -> list[Invitation]:
        return []

    async def accept(self, invitation: Invitation, *, at: float) -> None:
        return None

    async def drop_invitation(self, key: str, user_id: str) -> None:
        return None

    async def delete(self, key: str) -> None:
        return None

    async def put(self, entries: Sequence[SharedMemory]) -> None:
        return None

    async def entries(self, memory_ids: Collection[str]) -> dict[str, SharedMemory]:
        return {}

    async def drop(self, memory_ids: Collection[str]) -> None:
        return None

    async def add_reader(self, key: str, user_id: str) -> None:
        return None

    async def readers(self, key: str) -> list[str]:
        return []

    async def forget_user(self, user_id: str) -> None:
        return None

    async def authored(self, user_id: str) -> list[SharedMemory]:
        return []


class NoErasures:
    """`Erasures` where none are recorded."""

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        return None

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        return None

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        return ()

    async def pending(self) -> Sequence[ErasureRequest]:
        return ()

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        return None

    async def expire(self, *, before: float) -> None:
        return None


class NoIdempotencyKeys:
    """`IdempotencyKeys` where nothing is remembered: every call is a first one."""

    async def claim(self, user_id: str, key: str, *, fingerprint: bytes, now: float) -> KeyClaim:
        return KeyClaim(fingerprint, now)

    async def answered(self, user_id: str, key: str, answer: Sequence[str]) -> None:
        return

    async def erase(self, user_id: str) -> None:
        return


class NoChatStates:
    """`ChatStates` where nothing is stored."""

    async def read(self, query: ChatStateQuery) -> ChatState:
        return ChatState()


def request_stores(
    notes: NoteBook,
    receipts: Receipts,
    usage_counts: UsageCounts,
    profiles: Profiles | None = None,
    states: CompactedStates | None = None,
    summaries: SessionSummaries | None = None,
    *,
    idempotency: IdempotencyKeys | None = None,
    opt_outs: OptOuts | None = None,
    erasures: Erasures | None = None,
    projects: Projects | None = None,
    chat_states: ChatStates | None = None,
) -> RequestStores:
    return RequestStores(
        *(notes, receipts, usage_counts, profiles or NoProfiles(), states, summaries or NoSummaries()),
        *(idempotency or NoIdempotencyKeys(), opt_outs or NoOptOuts(), erasures or NoErasures()),
        *(projects or NoProjects(), chat_states or NoChatStates()),
    )
