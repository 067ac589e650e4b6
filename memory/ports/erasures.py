"""The ports of erasing users with proof: a record of erasures, what rewrites files, and what looks for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol, Self

FILES = "files"  # the place that is on this machine
ERASURES_PER_USER_MAX = 100  # recorded, those of projects with them: a project's name may be any word


@dataclass(frozen=True, slots=True)
class ErasureRequest:
    """What was deleted by one erasure. `asked_at`, `deleted_at`: Unix seconds; `deleted`: numbers by kind."""

    id: str
    asked_at: float
    deleted_at: float
    deleted: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PlaceReport:
    """A look into one place: its files, or what a server shows. `searched`: what was read, and how.

    `items`: files, keys or rows that were read, of so many `bytes`. `found_in`: names of those that hold what was
    looked for, which do not hold it themselves. `not_searched`: what of this place could not be read, and why.
    """

    place: str
    searched: str
    items: int
    bytes: int
    found_in: tuple[str, ...] = ()
    not_searched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanReport:
    """Looks into all places. `files`, `bytes`: numbers of files, and of their bytes; `found_in`: of all places.

    Without `places`: of a release that looked into files only.
    """

    scanned_at: float
    files: int
    bytes: int
    found_in: tuple[str, ...] = ()
    places: tuple[PlaceReport, ...] = ()

    @classmethod
    def of(cls, places: Sequence[PlaceReport], *, at: float) -> Self:
        files = [one for one in places if one.place == FILES]
        found = tuple(name for one in places for name in one.found_in)
        return cls(at, sum(one.items for one in files), sum(one.bytes for one in files), found, tuple(places))

    @property
    def is_complete(self) -> bool:
        """Whether nothing was left out."""
        return not any(one.not_searched for one in self.places)


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """One erasure. `rewritten_at`: None while files may still hold deleted bytes; `scan`: None before it was made."""

    request: ErasureRequest
    rewritten_at: float | None = None
    scan: ScanReport | None = None


class Erasures(Protocol):
    """Erasures of users, by a digest of their ids, durable. `part`: what of the user was erased; "" for everything.

    The latest `ERASURES_PER_USER_MAX` of a user are kept, of whatever parts, also where files wait: what is written for
    the latest is written for all before it. Raises `Unavailable`.
    """

    async def begun(self, user_id: str, request: ErasureRequest, *, part: str = "") -> None:
        """Rows are deleted; the files wait to be rewritten. Called again with the same id, they wait again."""
        ...

    async def get(self, user_id: str, erasure_id: str, *, part: str = "") -> ErasureRecord | None:
        """None if there is none, or it is somebody else's, or of another part."""
        ...

    async def latest(self, *, limit: int) -> Sequence[ErasureRecord]:
        """Those of all users, the latest first."""
        ...

    async def pending(self) -> Sequence[ErasureRequest]:
        """Those whose files wait to be rewritten, oldest first, some hundred at most."""
        ...

    async def rewritten(self, erasures: Sequence[ErasureRequest], *, at: float) -> None:
        """Files are rewritten since these were found waiting. One that was begun again meanwhile waits on."""
        ...

    async def scanned(self, erasure_id: str, report: ScanReport) -> None:
        """Replaces an earlier report."""
        ...

    async def expire(self, *, before: float) -> None:
        """Delete those whose files were rewritten before that time."""
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


class PlaceScan(Protocol):
    """Looks for strings in one place where the deployment keeps something."""

    async def scan(self, wanted: Sequence[str]) -> PlaceReport | None:
        """Where any of these strings is, in the usual encodings; None if another place covers this one.

        Raises `Unavailable` if nothing can be read now.
        """
        ...


@dataclass(frozen=True, slots=True)
class ErasureProof:
    """`places`: where is looked; without any, there is no proof."""

    record: Erasures
    places: tuple[PlaceScan, ...] = ()
