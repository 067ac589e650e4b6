"""What PostgreSQL's errors mean to a runner. Its messages may quote values, so that only codes are passed on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors

from memory.errors import Unavailable

# Transactions met each other: the same job succeeds in another one. A key that two wrote at once is among them.
MET_ANOTHER = (errors.SerializationFailure, errors.DeadlockDetected, errors.UniqueViolation, errors.ExclusionViolation)
_GONE = ("57P01", "57P02", "57P03", "25006")  # it ends or starts; a primary that became a standby reads only
_REASONS = {
    "53300": "it has no connection left: raise max_connections, or run fewer processes",
    "53100": "its disk is full",
    "57014": "a statement took too long",
    "55P03": "a row was locked for too long",
    "25006": "it only reads: a standby, or a primary that was replaced",
    "42501": "the role may not do that: see `memproxy doctor`",
    "42P01": "tables are missing: run `memproxy migrate`",
    "57P01": "it is shutting down",
    "57P03": "it is starting or stopping",
}


def is_gone(error: psycopg.Error) -> bool:
    """Whether the server, or the way to it, is not there any more. What a COMMIT did then, nobody knows."""
    code = error.sqlstate
    return code is None or code.startswith("08") or code in _GONE


def translated(error: psycopg.Error) -> Unavailable:
    code = error.sqlstate
    if code is None:
        return Unavailable("turn_log", "PostgreSQL cannot be reached, or closed the connection")
    return Unavailable("turn_log", f"PostgreSQL: {_REASONS.get(code, type(error).__name__)} ({code})")


@contextmanager
def translating() -> Iterator[None]:
    """Raises `Unavailable` for the server's errors."""
    try:
        yield
    except psycopg.Error as error:
        raise translated(error) from error
