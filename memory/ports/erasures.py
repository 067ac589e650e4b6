"""The ports of erasing users: a record of erasures, and what rewrites files; and of users who switched memory off."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from memory.model.erasures import ErasureRecord, ErasureRequest

ERASURES_PER_USER_MAX = 100  # recorded, those of projects with them: a project's name may be any word


class Erasures(Protocol):
    """Erasures of users, by a digest of their ids, durable. `part`: what of the user was erased; "" for everything.

    The latest `ERASURES_PER_USER_MAX` of a user are kept, of whatever parts, also where files wait: what is written for
    the latest is written for all before it. Raises `Unavailable`.
    """

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        """Rows are deleted; the files wait to be rewritten. Called again with the same id, they wait again."""

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        """None if there is none, or it is somebody else's, or of another part."""

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        """Those of all users, the latest first."""

    async def pending(self) -> Sequence[ErasureRequest]:
        """Those whose files wait to be rewritten, oldest first, some hundred at most."""

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        """Files are rewritten since these were found waiting. One that was begun again meanwhile waits on."""

    async def expire(self, *, before: float) -> None:
        """Delete those whose files were rewritten before that time."""


class FileRewriting(Protocol):
    """A part whose files keep the bytes of rows that were deleted."""

    async def refuse_in_vain(self) -> None:
        """Raises `Unavailable` if `rewrite` is known to be impossible, before other parts are rewritten for nothing."""

    async def rewrite(self) -> None:
        """On return no file of it holds bytes of rows that were deleted before the call.

        Raises `Unavailable` if that was impossible now; may be repeated, and be broken off by a crash.
        """


class WriteBarrier(Protocol):
    """Keeps all writers of memories out for a moment, in all processes. Raises `Unavailable`."""

    def alone(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Only one process at a time is inside, for at most so long; `writers` are remembered meanwhile.

        Raises `Conflict` while another process is inside.
        """

    def closed(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Nobody holds a user's lock inside, for at most so long; whoever wants one waits. Raises `Unavailable` if
        those that are held are not released within seconds.
        """

    async def writers(self) -> Sequence[str]:
        """The users whose locks were held at any time since `alone` began."""


class OptOuts(Protocol):
    """Durable, and the same for all processes: every call that begins after a change has returned sees it.

    Kept when a user is erased, so that erasing never resumes recording; therefore users are stored as digests of their
    ids only. Raises `Unavailable`.
    """

    async def since(self, user_id: str) -> float | None:
        """When the user opted out (Unix seconds); None if memory may be used. Some microseconds: asked at each chat."""

    async def set(self, user_id: str, *, at: float) -> float:
        """The user opts out. Returns since when they have; a repeated call changes nothing. Durable on return."""

    async def clear(self, user_id: str) -> None:
        """Memory may be used again. Durable on return."""

    async def count(self) -> int:
        """How many users have opted out."""
