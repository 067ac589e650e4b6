"""Whether a PostgreSQL database can be used, and its tables: made in an empty one, migrated by `memproxy migrate`."""

from __future__ import annotations

import secrets
from typing import Any

import psycopg
from psycopg import errors

from memory.adapters.sql.dialect import postgres_schema
from memory.adapters.sql.migrations import VERSION, schema, steps_from
from memory.adapters.sql.postgres_errors import translated
from memory.adapters.sql.postgres_pool import SCHEMA, PostgresAddress
from memory.errors import BadSetting

OLDEST_VERSION = 140000  # PostgreSQL 14, in numbers as the server says them
LOCK_KEY = 0x6D70_7478  # of the advisory lock: one process at a time makes or changes the tables
DIGEST_KEY_BYTES = 32


def prepare_tables(address: PostgresAddress, *, migrates: bool = False) -> int:
    """Create the tables in an empty database. Returns the version that was there before, 0 if none was.

    `migrates`: also lead older tables here. Raises `BadSetting` for a database that cannot be used, `Unavailable`.
    """
    try:
        with psycopg.connect(address.conninfo(), autocommit=False) as connection:
            check_server(connection)
            return _prepared(connection, migrates=migrates)
    except psycopg.OperationalError as error:
        raise _refused(error) or translated(error) from error
    except errors.InsufficientPrivilege as error:
        raise BadSetting(
            f"database_url: the role has no rights to the schema {SCHEMA}: let a role that may create it run `memproxy "
            f"migrate` once, then GRANT ALL ON SCHEMA {SCHEMA} and on its tables and sequences to the role of memproxy"
        ) from error
    except errors.ReadOnlySqlTransaction as error:
        raise BadSetting("database_url: this server only reads (a standby): name the primary") from error
    except psycopg.Error as error:
        raise translated(error) from error


def check_server(connection: psycopg.Connection[Any]) -> None:
    """Raises `BadSetting`."""
    if connection.info.server_version < OLDEST_VERSION:
        raise BadSetting(
            f"PostgreSQL {OLDEST_VERSION // 10000} or later is needed; "
            f"this server is {connection.info.server_version // 10000}"
        )
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise BadSetting(
            f"database_url: the database has the encoding {encoding}: "
            "create one with ENCODING 'UTF8' TEMPLATE template0"
        )


def _prepared(connection: psycopg.Connection[Any], *, migrates: bool) -> int:
    version = _version(connection)
    if version == VERSION:
        return version
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK_KEY,))
    version = _version(connection)  # another process may have been at it
    if version == VERSION:
        return version
    if version > VERSION:
        raise BadSetting(
            f"database_url: its tables have version {version}, this memproxy reads version {VERSION}: "
            "install the newer memproxy, or name another database"
        )
    if version and not migrates:
        raise BadSetting(
            f"database_url: its tables have version {version}, this memproxy reads version {VERSION}: "
            "run `memproxy migrate` once no older memproxy runs"
        )
    if version:
        for statement in steps_from(version):
            connection.execute(postgres_schema(statement))
        connection.execute("UPDATE schema_version SET version = %s", (VERSION,))
    else:
        _create(connection)
    return version


def _create(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    for statement in schema():
        connection.execute(postgres_schema(statement))
    connection.execute("INSERT INTO digest_keys (key) VALUES (%s)", (secrets.token_bytes(DIGEST_KEY_BYTES),))
    connection.execute("CREATE TABLE schema_version (version BIGINT NOT NULL)")
    connection.execute("INSERT INTO schema_version (version) VALUES (%s)", (VERSION,))


def _version(connection: psycopg.Connection[Any]) -> int:
    """Of the tables; 0 if there are none."""
    found = connection.execute("SELECT to_regclass(%s)", (f"{SCHEMA}.schema_version",)).fetchone()
    if found is None or found[0] is None:
        return 0
    row = connection.execute("SELECT version FROM schema_version").fetchone()
    assert row is not None, "the table was made with one row"
    return int(row[0])


def _refused(error: psycopg.OperationalError) -> BadSetting | None:
    """What somebody has to set right. The messages are those of libpq and hold no content."""
    text = str(error)
    if "startup parameter" in text:
        return BadSetting(
            "database_url: this is a pooler that shares connections between transactions (PgBouncer): "
            "name the PostgreSQL server itself; memproxy keeps its own connections, at most ten a process"
        )
    if "read-write" in text or "read-only" in text:
        return BadSetting("database_url: none of its servers takes writes: name the primary")
    if "certificate" in text or "SSL" in text:
        return BadSetting(
            "database_url: its certificate is not signed by memory.database.certificate_authority, or it has no TLS: "
            "name the PEM file of the authority that signed it, and the server by a name in it"
        )
    if "does not exist" in text or "authentication" in text or "no pg_hba.conf entry" in text:
        reason = text.strip().splitlines()[-1].partition("FATAL:")[2].strip() or "the server refuses the role"
        return BadSetting(f"database_url: {reason}")
    return None
