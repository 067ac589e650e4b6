"""Creates the tables in a SQLite file, or brings those of an older version to this one."""

from __future__ import annotations

import secrets
import sqlite3

from memory.adapters.sql.dialect import sqlite_schema
from memory.adapters.sql.migrations import VERSION, schema, steps_from
from memory.errors import BadSetting

APPLICATION_ID = 0x6D70_7478  # "mptx": tells our file from any other SQLite file
SQLITE_OLDEST = (3, 39, 0)  # what the statements need; Python 3.11 usually brings a newer one
DIGEST_KEY_BYTES = 32


def prepare_tables(connection: sqlite3.Connection, path: str) -> None:
    """In one transaction. Raises `BadSetting` for a file that is not ours, or of a version from which nothing leads
    here.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        version = _version(connection, path)
        if version is None:
            for statement in schema():
                connection.execute(sqlite_schema(statement))
            connection.execute("INSERT INTO digest_keys (key) VALUES (?)", (secrets.token_bytes(DIGEST_KEY_BYTES),))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        elif version != VERSION:
            for statement in _steps(version, path):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection, path: str) -> int | None:
    """Of the tables in the file; None if it is empty."""
    if connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None:
        return None
    if int(connection.execute("PRAGMA application_id").fetchone()[0]) != APPLICATION_ID:
        raise BadSetting(f"{path} is a database of something else: name another file for the turn log")
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _steps(version: int, path: str) -> list[str]:
    try:
        if version < VERSION:
            return steps_from(version)
    except KeyError:
        pass
    raise BadSetting(
        f"{path} has version {version}, this memproxy reads version {VERSION}: "
        "start the memproxy that wrote it again, or name another file"
    )
