"""What the jobs of this folder run on: one of two runners, which differ in where a job runs and how it is repeated.

A job is a plain function of a connection, inside one transaction. It may run more than once (a transaction that met
another one is repeated), so it changes nothing but the database.

Ports on a database: their methods are jobs, and what stands above each says how it runs.

    class SqlOptOuts(OnDatabase):
        @reads_now
        def since(self, connection: Connection, user_id: str) -> float | None: ...

    await SqlOptOuts(database).since(user_id)

A method that is a job of another module is `reading` or `writing` that job. All of them raise `Unavailable`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

from memory.adapters.sql.job_writer import SOON_SECONDS, Job, JobWriter
from memory.adapters.sql.statements import Connection
from memory.errors import Unavailable
from memory.ports import Clock

IN_PASSING_SECONDS = 1.0  # of what a chat leaves behind: it goes with the end of its turn, or what else is written

Result = TypeVar("Result")


class Owners(Protocol):
    """Which processes that use the database are alive. One instance is one owner; names are never reused."""

    @property
    def name(self) -> str: ...

    def is_dead(self, connection: Connection, owner: str) -> bool:
        """We ourselves never are."""

    def find_dead(self, connection: Connection, suspects: Collection[str]) -> list[str]:
        """The dead among `suspects`, and others who are known to be dead."""

    def forget(self, dead_owners: Collection[str]) -> None:
        """They hold nothing any more. Blocks; raises `Unavailable`."""

    def introductions(self) -> Sequence[str]:
        """Of the other living owners; "" for one that says nothing. Blocks."""


class SqlDatabase(ABC):
    """Every call raises `Unavailable`, and what its job raises. `_writer`: while it is open."""

    owners: Owners
    _writer: JobWriter | None = None

    @abstractmethod
    async def server_time(self) -> float:
        """What the machine of the database calls now, in Unix seconds."""

    @abstractmethod
    async def read(self, job: Job[Result]) -> Result:
        """Run `job` on one consistent view of the database."""

    @abstractmethod
    async def read_now(self, job: Job[Result]) -> Result:
        """Likewise, some statements by key, as fast as it goes."""

    async def write(self, job: Job[Result]) -> Result:
        """Run `job` in a transaction, committed on return. Cancelling the caller does not stop it."""
        if self._writer is None:
            raise Unavailable("turn_log", "it is closed")
        return await self._writer.write(job)

    def post(self, job: Job[object], *, within: float = SOON_SECONDS, then: Callable[[], None] | None = None) -> None:
        """Run `job` with the next write, or after `within` seconds, after all earlier ones. Its result is not reported.

        `then` is called on the loop when it is done, or at once if it was refused because too much is waiting.
        """
        if self._writer is not None:
            self._writer.post(job, within, then)
        elif then is not None:
            then()


Values = ParamSpec("Values")
Answer: TypeAlias = Coroutine[Any, Any, Result]


class OnDatabase:
    """What is kept in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database


class DatedOnDatabase(OnDatabase):
    """Its jobs tell the time by `clock`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock


Port = TypeVar("Port", bound=OnDatabase)


def reads(
    job: Callable[Concatenate[Port, Connection, Values], Result],
) -> Callable[Concatenate[Port, Values], Answer[Result]]:
    """On one consistent view of the database."""

    async def run(port: Port, /, *values: Values.args, **named: Values.kwargs) -> Result:
        return await port._database.read(lambda connection: job(port, connection, *values, **named))

    return run


def reads_now(
    job: Callable[Concatenate[Port, Connection, Values], Result],
) -> Callable[Concatenate[Port, Values], Answer[Result]]:
    """Some statements by key, as fast as it goes."""

    async def run(port: Port, /, *values: Values.args, **named: Values.kwargs) -> Result:
        return await port._database.read_now(lambda connection: job(port, connection, *values, **named))

    return run


def writes(
    job: Callable[Concatenate[Port, Connection, Values], Result],
) -> Callable[Concatenate[Port, Values], Answer[Result]]:
    """In one transaction, committed on return."""

    async def run(port: Port, /, *values: Values.args, **named: Values.kwargs) -> Result:
        return await port._database.write(lambda connection: job(port, connection, *values, **named))

    return run


def reading(
    job: Callable[Concatenate[Connection, Values], Result],
) -> Callable[Concatenate[OnDatabase, Values], Answer[Result]]:
    return reads(lambda _, connection, /, *values, **named: job(connection, *values, **named))


def writing(
    job: Callable[Concatenate[Connection, Values], Result],
) -> Callable[Concatenate[OnDatabase, Values], Answer[Result]]:
    return writes(lambda _, connection, /, *values, **named: job(connection, *values, **named))
