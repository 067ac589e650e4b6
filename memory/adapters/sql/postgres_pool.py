"""Connections to one PostgreSQL server, each used by one thread at a time, opened when they are needed.

While the server cannot be reached, nobody waits for another attempt: calls fail at once until it is tried again. The
server's messages may quote values, so that only codes are passed on.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from memory.adapters.sql.statements import SqlRows, Statement, Value
from memory.errors import Late, Unavailable, Unusable

SCHEMA = "memproxy"  # of our tables
CONNECT_SECONDS_MAX = 2
STATEMENT_SECONDS_MAX = 5.0  # inside the time that a caller waits
LOCK_SECONDS_MAX = 3.0
IDLE_SECONDS_MAX = 30.0  # inside a transaction: whoever was suspended holds up nobody for longer
RETRY_SECONDS = 0.25  # between two attempts to reach a server that was not there
# Sequential reads of small tables would make unrelated transactions meet (SERIALIZABLE notes what was read).
OPTIONS = (
    f"-c search_path={SCHEMA} -c statement_timeout={STATEMENT_SECONDS_MAX * 1000:.0f} "
    f"-c lock_timeout={LOCK_SECONDS_MAX * 1000:.0f} "
    f"-c idle_in_transaction_session_timeout={IDLE_SECONDS_MAX * 1000:.0f} -c enable_seqscan=off "
    "-c client_min_messages=warning"
)
CHAT_OPTIONS = f"{OPTIONS} -c statement_timeout=500"  # of reads by key, for which a chat waits 50 ms, and no longer
# Transactions met each other: the same job succeeds in another one. A key that two wrote at once is among them.
MET_ANOTHER = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation, errors.ExclusionViolation)
# A transaction that failed was to prepare it, behind the statement that failed: psycopg takes it for prepared. The same
# job succeeds on another connection.
FORGOTTEN = errors.InvalidSqlStatementName
# Begin the codes of a server that is not there: it ends or starts; a primary that became a standby reads only.
_GONE = ("08", "57P01", "57P02", "57P03", "25006")
_OF_ALL = (*_GONE, "40", "42501", "42P01", "53", "58")  # it refuses whatever is asked now, not this alone
# What it says to whom it does not let in: the library gives no code then.
_CODES = {"too many c": "53300", "connection slots": "53300", "database system is": "57P03", "is read-only": "25006"}
_REASONS = {
    "53300": "it has no connection left: raise max_connections, or run fewer processes",
    "53100": "its disk is full",
    "57014": "a statement took too long",
    "55P03": "a row or table was locked for too long",
    "25006": "it only reads: a standby, or a primary that was replaced",
    "42501": "the role may not do that: see `memproxy doctor`",
    "42P01": "tables are missing: run `memproxy migrate`",
    "57P01": "it is shutting down",
    "57P03": "it is starting or stopping",
}


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """`url`: `postgresql://HOST[:PORT][,HOST[:PORT]…]/DATABASE`, of which the one that takes writes is used.

    `certificate_authority`: a PEM file by which the server's certificate and name are verified.
    """

    url: str
    username: str = ""
    password: str = field(default="", repr=False)
    certificate_authority: str = ""

    def conninfo(self, *, options: str = OPTIONS) -> str:
        return make_conninfo(  # which leaves out what is None
            self.url,
            options=options,
            connect_timeout=CONNECT_SECONDS_MAX,
            target_session_attrs="read-write",
            application_name="memproxy",
            client_encoding="UTF8",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
            tcp_user_timeout=10_000,
            user=self.username or None,
            password=self.password or None,
            sslmode="verify-full" if self.certificate_authority else None,
            sslrootcert=self.certificate_authority or None,
        )


class PostgresRows:
    """`memory.adapters.sql.statements.SqlRows`. In a pipeline the server is waited for when somebody looks."""

    __slots__ = ("_cursor", "fetchall", "fetchone")

    def __init__(self, cursor: psycopg.Cursor[Any]) -> None:
        self._cursor = cursor
        self.fetchone, self.fetchall = cursor.fetchone, cursor.fetchall

    @property
    def rowcount(self) -> int:
        if self._cursor.connection.info.pipeline_status != psycopg.pq.PipelineStatus.OFF:
            with self._cursor.connection.pipeline():
                pass  # one inside another ends when all that was sent is done
        return self._cursor.rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._cursor)


class PostgresConnection:
    """`memory.adapters.sql.statements.Connection`."""

    __slots__ = ("raw",)

    def __init__(self, raw: psycopg.Connection[Any]) -> None:
        self.raw = raw

    def execute(self, statement: Statement, values: Mapping[str, Value]) -> SqlRows:
        return PostgresRows(self.raw.execute(statement.postgres, values, binary=True))

    def executemany(self, statement: Statement, rows: Sequence[Mapping[str, Value]]) -> None:
        for row in rows:
            self.raw.execute(statement.postgres, row, binary=True)


class PostgresPool:
    """Every method may be called from any thread. Raises `Unavailable` where the server cannot be reached."""

    def __init__(self, address: PostgresAddress, *, options: str = OPTIONS) -> None:
        logging.getLogger("psycopg").setLevel(logging.CRITICAL + 1)  # it logs what the server says, which quotes values
        self._conninfo = address.conninfo(options=options)
        self._idle: deque[psycopg.Connection[Any]] = deque()
        self._lock = threading.Lock()
        self._refused_until, self._refusal = float("-inf"), psycopg.Error()
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[PostgresConnection]:
        """Outside a transaction. One that broke, or of whose statements psycopg knows too many, is not used again."""
        raw = self._taken()
        try:
            yield PostgresConnection(raw)
        except psycopg.Error as error:
            if is_gone(error) or isinstance(error, FORGOTTEN):
                raw.close()
            raise
        finally:
            self._give_back(raw)

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, deque()
        for raw in idle:
            raw.close()

    def _taken(self) -> psycopg.Connection[Any]:
        with self._lock:
            if self._idle:
                return self._idle.pop()
            if time.monotonic() < self._refused_until:
                raise translated(self._refusal)
        try:
            return psycopg.connect(self._conninfo, autocommit=True)
        except psycopg.Error as error:
            with self._lock:
                self._refused_until, self._refusal = time.monotonic() + RETRY_SECONDS, error
            raise translated(error) from error

    def _give_back(self, raw: psycopg.Connection[Any]) -> None:
        is_usable = not raw.closed and raw.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        with self._lock:
            if is_usable and not self._is_closed:
                self._idle.append(raw)
                return
            if raw.closed:  # the others are those of a server that went away
                idle, self._idle = self._idle, deque()
            else:
                idle = deque()
        for one in (raw, *idle):
            one.close()


def is_gone(error: psycopg.Error) -> bool:
    """Whether the server, or the way to it, is not there any more. What a COMMIT did then, nobody knows."""
    if error.sqlstate is None:  # the others are of values that the library does not send
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    return error.sqlstate.startswith(_GONE)


def translated(error: psycopg.Error) -> Unavailable:
    """`Unusable`, or `Late`, for what may concern one job alone."""
    code = error.sqlstate or next((code for words, code in _CODES.items() if words in str(error)), "")
    if not code and is_gone(error):
        return Unavailable("turn_log", "PostgreSQL cannot be reached, or closed the connection")
    kind = Unavailable if code.startswith(_OF_ALL) else Late if code in ("57014", "55P03") else Unusable
    return kind("turn_log", f"PostgreSQL: {_REASONS.get(code, type(error).__name__)} ({code or 'not sent'})")


@contextmanager
def translating() -> Iterator[None]:
    """Raises `Unavailable` for the server's errors."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
