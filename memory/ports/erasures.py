"""The ports of erasing users with proof: a record of erasures, and what rewrites files and looks into them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What was deleted by one erasure. `asked_at`, `deleted_at`: Unix seconds; `deleted`: numbers by kind."""

    id: str
    asked_at: float
    deleted_at: float
    deleted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """`places`: numbers of files and of bytes that were read; `found_in`: files that hold what was looked for."""

    scanned_at: float
    files: int
    bytes: int
    found_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """One erasure. `rewritten_at`: None while files may still hold deleted bytes; `scan`: None before it was made."""

    request: ErasureRequest
    rewritten_at: float | None = None
    scan: ScanReport | None = None


class Erasures(Protocol):
    """Erasures of users, by a digest of their ids, durable. Raises `Unavailable`."""

    async def begun(self, user_id: str, request: ErasureRequest) -> None:
        """Rows are deleted; the files wait to be rewritten. Called again with the same id, they wait again."""
        ...

    async def get(self, user_id: str, erasure_id: str) -> ErasureRecord | None:
        """None if there is none, or it is somebody else's."""
        ...

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        """Those of all users, the latest first."""
        ...

    async def pending(self) -> Sequence[ErasureRequest]:
        """Those whose files wait to be rewritten, oldest first, some hundred at most."""
        ...

    async def rewritten(self, erasure_ids: Sequence[str], *, at: float) -> None: ...

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        """Replaces an earlier report."""
        ...


class FileRewriting(Protocol):
    """A part whose files keep the bytes of rows that were deleted."""

    async def refuse_in_vain(self) -> None:
        """Raises `Unavailable` if `rewrite` is known to be impossible, before other parts are rewritten for nothing."""
        ...

    async def rewrite(self) -> None:
        """On return no file of it holds bytes of rows that were deleted before the call.

        Raises `Unavailable` if that was impossible now; may be repeated, and be broken off by a crash.
        """
        ...


class WriteBarrier(Protocol):
    """Keeps all writers of memories out for a moment, in all processes. Raises `Unavailable`."""

    def alone(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Only one process at a time is inside, for at most so long; `writers` are remembered meanwhile.

        Raises `Conflict` while another process is inside.
        """
        ...

    def closed(self, *, seconds: float) -> AbstractAsyncContextManager[None]:
        """Nobody holds a user's lock inside, for at most so long; whoever wants one waits. Raises `Unavailable` if
        those that are held are not released within seconds.
        """
        ...

    async def writers(self) -> Sequence[str]:
        """The users whose locks were held at any time since `alone` began."""
        ...


class FileScan(Protocol):
    """Looks for a string in all files of the deployment."""

    async def scan(self, wanted: Sequence[str]) -> ScanReport:
        """Where any of these strings is, in the usual encodings, also in compressed columns. Raises `Unavailable`."""
        ...


class NoErasures:
    """`Erasures` where none are recorded."""

    async def begun(self, user_id: str, request: ErasureRequest) -> None:
        return None

    async def get(self, user_id: str, erasure_id: str) -> ErasureRecord | None:
        return None

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        return ()

    async def pending(self) -> Sequence[ErasureRequest]:
        return ()

    async def rewritten(self, erasure_ids: Sequence[str], *, at: float) -> None:
        return None

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        return None


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """`files`: None where no files are looked into."""

    record: Erasures = field(default_factory=NoErasures)
    files: FileScan | None = None


__all__ = [
    "ErasureProof",
    "ErasureRecord",
    "ErasureRequest",
    "Erasures",
    "FileRewriting",
    "FileScan",
    "NoErasures",
    "ScanReport",
    "WriteBarrier",
]
