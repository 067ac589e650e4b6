"""What the jobs of this folder run on: one of two runners, which differ in where a job runs and how it is repeated.

A job is a plain function of a connection, inside one transaction. It may run more than once (a transaction that met
another one is repeated), so it changes nothing but the database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Protocol, TypeAlias, TypeVar

from memory.adapters.sql.statements import Connection

CALL_SECONDS_MAX = 10.0  # no caller waits longer for a job
SOON_SECONDS = 0.01  # of posted jobs: those of this time are one transaction
IN_PASSING_SECONDS = 1.0  # of what a chat leaves behind: it goes with the end of its turn, or what else is written

Result = TypeVar("Result")
Job: TypeAlias = Callable[[Connection], Result]


class Owners(Protocol):
    """Which processes that use the database are alive. One instance is one owner; names are never reused."""

    @property
    def name(self) -> str: ...

    def is_dead(self, connection: Connection, owner: str) -> bool:
        """We ourselves never are."""
        ...

    def find_dead(self, connection: Connection, suspects: Collection[str]) -> list[str]:
        """The dead among `suspects`, and others who are known to be dead."""
        ...

    def forget(self, dead_owners: Collection[str]) -> None:
        """They hold nothing any more. Blocks; raises `Unavailable`."""
        ...

    def introductions(self) -> Sequence[str]:
        """Of the other living owners; "" for one that says nothing. Blocks."""
        ...


class SqlDatabase(Protocol):
    """Every call raises `Unavailable`, and what its job raises."""

    @property
    def owners(self) -> Owners: ...

    async def server_time(self) -> float:
        """What the machine of the database calls now, in Unix seconds."""
        ...

    async def write(self, job: Job[Result]) -> Result:
        """Run `job` in a transaction, committed on return. Cancelling the caller does not stop it."""
        ...

    def post(self, job: Job[object], *, within: float = SOON_SECONDS, then: Callable[[], None] | None = None) -> None:
        """Run `job` with the next write, or after `within` seconds, after all earlier ones. Its result is not reported.

        `then` is called on the loop when it is done, or at once if it was refused because too much is waiting.
        """
        ...

    async def read(self, job: Job[Result]) -> Result:
        """Run `job` on one consistent view of the database."""
        ...

    async def read_now(self, job: Job[Result]) -> Result:
        """Likewise, some statements by key, as fast as it goes."""
        ...
