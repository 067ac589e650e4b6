"""Named statements from `.sql` files: one text for both engines, which a reader can run, and one call for each; and
values that are written for them.

    SQL = statements("turns_queue")                 # turns_queue.sql, next to this file
    SQL.held_lease(connection, window_id=…, token=…).fetchone()

A file holds statements under lines `-- name: held_lease`. The library `aiosql` loads such files too, but for one driver
at a time: a job here runs on whatever connection it is given, and three words differ between the engines (`dialect`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Protocol, TypeAlias, TypeVar

from memory.adapters.sql.dialect import postgres_statement, sqlite_statement, without_comments

Read = TypeVar("Read")
Value: TypeAlias = str | bytes | float | bool | None

NAME = "-- name: "  # begins each statement of a file


def listed(values: Iterable[str]) -> str:
    """Texts as one value, which `json_each` takes apart in a statement."""
    return json.dumps(list(values))


def user_hash(user_id: str) -> str:
    """What is kept of a user who erased everything, or opted out: SHA-256 in hexadecimal digits."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()


class SqlRows(Protocol):
    """What a statement gives: rows as tuples, or how many rows it changed."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...  # noqa: ANN401 - a row has the types that its statement says

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """One connection inside one transaction, which the runner begins and ends."""

    def execute(self, statement: Statement, values: Mapping[str, Value]) -> SqlRows: ...

    def executemany(self, statement: Statement, rows: Sequence[Mapping[str, Value]]) -> None: ...


class Statement:
    """One text, for both engines. `name`: its file and its name there."""

    __slots__ = ("name", "postgres", "sqlite")

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.sqlite = sqlite_statement(text)
        self.postgres = postgres_statement(text)

    def __call__(self, connection: Connection, /, **values: Value) -> SqlRows:
        return connection.execute(self, values)

    def exists(self, connection: Connection, /, **values: Value) -> bool:
        return connection.execute(self, values).fetchone() is not None

    def one(self, connection: Connection, read: Callable[[Any], Read], /, **values: Value) -> Read | None:
        """What `read` makes of the first row; None without one."""
        row = connection.execute(self, values).fetchone()
        return None if row is None else read(row)

    def value(self, connection: Connection, read: Callable[[Any], Read], /, **values: Value) -> Read | None:
        """What `read` makes of the first column of the first row; None without one."""
        return self.one(connection, lambda row: read(row[0]), **values)

    def column(self, connection: Connection, /, **values: Value) -> list[str]:
        """The first column of all rows, a text."""
        return [row[0] for row in connection.execute(self, values)]

    def many(self, connection: Connection, rows: Sequence[Mapping[str, Value]], /) -> None:
        """Once for each of `rows`."""
        if rows:
            connection.executemany(self, rows)


class SqlStatements:
    """Those of one file, as attributes."""

    def __init__(self, file: str, texts: Mapping[str, str]) -> None:
        self._file = file
        self._statements = {name: Statement(f"{file}.{name}", text) for name, text in texts.items()}

    def __getattr__(self, name: str) -> Statement:
        try:
            return self._statements[name]
        except KeyError:
            raise AttributeError(f"{self._file}.sql has no statement {name}") from None


def statements(file: str) -> SqlStatements:
    """`file`: without its folder and ending."""
    return SqlStatements(file, texts_in(file))


def texts_in(file: str) -> dict[str, str]:
    """The statements of a file by name, without comments."""
    text = files("memory.adapters.sql").joinpath(f"{file}.sql").read_text(encoding="utf-8")
    named = (part.partition("\n") for part in text.split(NAME)[1:])
    found: dict[str, str] = {}
    for name, _, body in named:
        assert name not in found, f"{file}.sql has two statements of the name {name}"
        found[name] = without_comments(body)
    return found
