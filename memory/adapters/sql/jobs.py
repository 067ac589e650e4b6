"""Ports on a database: their methods are jobs, and what stands above each says how it runs.

    class SqlOptOuts(OnDatabase):
        @reads_now
        def since(self, connection: Connection, user_id: str) -> float | None: ...

    await SqlOptOuts(database).since(user_id)

A method that is a job of another module is `reading` or `writing` that job. All of them raise `Unavailable`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.statements import Connection

Values = ParamSpec("Values")
Result = TypeVar("Result")
Answer: TypeAlias = Coroutine[Any, Any, Result]


class OnDatabase:
    """What is kept in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database


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
