"""Which processes that share a database over a network are alive: each adds to the number in a row of its own.

Nobody compares clocks, and a part that reaches the database slowly is not dead. Another is dead if this process, whose
own beats arrived in time all the while, saw its number stand still for `DEAD_SECONDS`. Whoever was late itself, as all
are after an outage, begins to watch again. Whoever ends in order deletes its row, and is dead at once.

A thread of its own beats, so that a busy event loop does not look like death.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import closing

import psycopg
import structlog

from memory.adapters.sql.postgres_pool import PostgresPool, translating
from memory.adapters.sql.statements import Connection, statements
from memory.errors import Unavailable

SQL = statements("beating_owners")
BEAT_SECONDS = 1.0
DEAD_SECONDS = 10.0  # the number stands still for so long, as long as a call may take
LATE_SECONDS = 3.0  # between two of our own beats: others may have been cut off as we were

_log = structlog.get_logger(__name__)


class Watch:
    """What one process has seen of the others' numbers. Pure: `at` are seconds of any one clock."""

    def __init__(self) -> None:
        self.owners: dict[str, tuple[int, float]] = {}  # the number of each, and since when it has been seen
        self._looked_at = float("-inf")

    def look(self, beats: Sequence[tuple[str, int]], *, at: float) -> None:
        """The numbers as they are at that time."""
        is_late = at - self._looked_at > LATE_SECONDS
        self._looked_at = at
        before = {} if is_late else self.owners
        self.owners = {}
        for name, beat in beats:
            known = before.get(name)
            self.owners[name] = known if known is not None and known[0] == beat else (beat, at)

    def is_still(self, name: str, *, at: float) -> bool:
        """Whether it has stood still for long, and we would know if it had not."""
        _, since = self.owners.get(name, (0, at))
        return at - self._looked_at <= LATE_SECONDS and at - since >= DEAD_SECONDS


class BeatingOwners:
    """`memory.adapters.sql.database.Owners`."""

    def __init__(self, pool: PostgresPool, *, introduction: str = "") -> None:
        self.name = ""
        self._pool = pool
        self._introduction = introduction
        self._watch = Watch()
        self._is_left = threading.Event()
        self._thread: threading.Thread | None = None

    def enter(self) -> None:
        """Raises `Unavailable`."""
        self.name = secrets.token_hex(16)
        with translating():
            self._beat()
        self._thread = threading.Thread(target=self._go_on, name="turn-log-heartbeat", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """From now on we count as dead. Where the server is away, others find out by themselves."""
        self._is_left.set()
        if self._thread is not None:
            self._thread.join()
        try:
            with self._pool.connection() as connection:
                SQL.leave(connection, name=self.name)
        except (psycopg.Error, Unavailable) as error:
            _log.warning("turn_log.owner_left_without_notice", reason=type(error).__name__)

    def is_dead(self, connection: Connection, owner: str) -> bool:
        if owner == self.name:
            return False
        return not SQL.owner.exists(connection, name=owner) or self._watch.is_still(owner, at=time.monotonic())

    def find_dead(self, connection: Connection, suspects: Collection[str]) -> list[str]:
        return [owner for owner in sorted({*suspects, *self._watch.owners}) if self.is_dead(connection, owner)]

    def forget(self, dead_owners: Collection[str]) -> None:
        with translating(), self._pool.connection() as connection:
            for name in dead_owners:
                SQL.leave(connection, name=name)

    def introductions(self) -> list[str]:
        now = time.monotonic()
        with translating(), self._pool.connection() as connection:
            rows = SQL.introductions(connection, name=self.name).fetchall()
        return [text for name, text in rows if not self._watch.is_still(name, at=now)]

    def _go_on(self) -> None:
        while not self._is_left.wait(BEAT_SECONDS):
            try:
                self._beat()
            except (psycopg.Error, Unavailable) as error:
                _log.warning("turn_log.heartbeat_failed", reason=type(error).__name__)

    def _beat(self) -> None:
        """Whose row is gone was taken for dead by somebody: it goes on, and what it held is no longer its own."""
        with self._pool.connection() as connection:
            if SQL.beat(connection, name=self.name).rowcount == 0:
                SQL.enter(connection, name=self.name, introduction=self._introduction)
            self._watch.look(SQL.beats(connection).fetchall(), at=time.monotonic())


def living_owners(pool: PostgresPool) -> int:
    """How many owners live now, seen from outside: their numbers grow while this looks. Closes the pool."""
    with closing(pool), translating(), pool.connection() as connection:
        (table,) = connection.raw.execute("SELECT to_regclass('owners')").fetchone() or (None,)  # none if it is empty
        before = {} if table is None else dict(SQL.beats(connection).fetchall())
        if not before:
            return 0
        time.sleep(LATE_SECONDS)
        after = SQL.beats(connection).fetchall()
    return sum(before.get(name) != beat for name, beat in after)
