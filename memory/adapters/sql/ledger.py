"""Locks and revisions per user in SQL: a sequence lock visible to every process that uses the database.

A revision is odd from the time the lock is taken until it is released; then the touched ids are in `changes` under the
new, even number. A lock whose holder is dead, or took too long, is repaired: the number advances, and since nobody
knows what was written, all earlier readers have to load everything. Memories are not touched here.

A holder that touched nothing returns the previous, even number, under which nothing that a reader holds has changed:

- A reader that saw it before, and sees it again, has missed nothing, also if the lock was held in between.
- A reader that saw the odd number knows only the even one below it, which is still true. The next holder may get the
  same odd number: nobody may compare odd numbers. Whoever stores one, with a plan that was made under the lock, calls
  `touch` first, even without ids, so that this number is passed for good.
- If the holder dies, or loses the lock, the number advances as ever: it may have been about to touch something.
- A user for whom nobody ever touched anything has no row, also after a lock: an erased user stays without one.
- An erased user has no row any more; the ledger goes on at a higher number that nobody has seen (`erased_users`).
- An even number that was only passed, while a lost lock was taken over, is never returned to: `known_since` is higher.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from memory.adapters.sql import erased_users
from memory.adapters.sql.database import DatedOnDatabase, SqlDatabase, reading, reads, reads_now, writes, writing
from memory.adapters.sql.erasures import is_closed, note_writer
from memory.adapters.sql.job_writer import CALL_SECONDS_MAX
from memory.adapters.sql.profiles import become_stale
from memory.adapters.sql.statements import Connection, listed, statements
from memory.errors import Conflict, Unavailable
from memory.ports import Clock, LedgerWrite, Revision

SQL = statements("ledger")

LOCK_SECONDS = 30.0  # since the last `renew`, which comes right before each write
# The time limits of `renew` and of the following write: the renewal 10, a check for foreign ids 5, up to 200 rows 10.
# They hold for a slow store; a process suspended between the two notices no time limit.
WORK_SECONDS_MAX = CALL_SECONDS_MAX + 5.0 + 10.0
assert WORK_SECONDS_MAX < LOCK_SECONDS
SENT_WITHIN_SHARE = 0.6  # of a term: by then the rows are sent, for the store may take as long as stated above
assert CALL_SECONDS_MAX + 5.0 <= SENT_WITHIN_SHARE * LOCK_SECONDS <= LOCK_SECONDS - 10.0
WAIT_SECONDS_MAX = 5.0  # for a lock held by somebody else
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.002, 0.05  # between two checks of a held lock
CHANGES_MAX = 1_000  # rows per user: a reader that is further behind loads everything


class SqlUserLedger(DatedOnDatabase):
    """`memory.ports.UserLedger` in an open `SqlDatabase`, which may be shared with the turn log."""

    def __init__(self, database: SqlDatabase, *, clock: Clock, wait_seconds: float = WAIT_SECONDS_MAX) -> None:
        super().__init__(database, clock=clock)
        self._wait_seconds = wait_seconds

    erase_epoch = reading(erased_users.erase_epoch)

    @reads_now
    def revision(self, connection: Connection, user_id: str) -> Revision:
        number = SQL.revision_of.value(connection, int, user_id=user_id)
        return Revision(erased_users.first_revision(connection, user_id) if number is None else number)

    @reads
    def changed_since(self, connection: Connection, user_id: str, number: int) -> frozenset[str] | None:
        row = SQL.revision_and_known(connection, user_id=user_id).fetchone()
        revision, known_since = row or (erased_users.first_revision(connection, user_id),) * 2
        if not known_since <= number <= revision:  # a larger number comes from another database
            return None
        return frozenset(SQL.changes_between.column(connection, user_id=user_id, number=number, revision=revision))

    @asynccontextmanager
    async def write(self, user_id: str) -> AsyncIterator[LedgerWrite]:
        """As the port says. Raises `Conflict` on exit if the lock was lost meanwhile, and makes all readers reload."""
        token = secrets.token_hex(16)
        await self._acquire(user_id, token)
        held = _HeldLock(self._database, user_id, token, self._clock)
        try:
            yield held
        finally:  # also after an error: part of it may have been written
            touched = held.touched - held.announced if held.is_touched else None
            is_ours = held.is_ended or await self._database.write(
                partial(_let_go, user_id=user_id, token=token, touched=touched)
            )
            if not is_ours:  # raised after the commit: readers have to notice in any case
                raise Conflict("the user's lock was lost while it was held: it took too long")

    async def _acquire(self, user_id: str, token: str) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._wait_seconds
        pause = PAUSE_SECONDS_MIN
        try:
            while not await self._is_acquired(user_id, token):
                if loop.time() >= deadline:
                    raise Unavailable("turn_log", f"the user's lock was held for {self._wait_seconds:.0f} s")
                await asyncio.sleep(pause)
                pause = min(2 * pause, PAUSE_SECONDS_MAX)
        except (asyncio.CancelledError, Unavailable):  # we may hold the lock by now without knowing
            self._database.post(partial(_take_back, user_id=user_id, token=token))
            raise

    async def _is_acquired(self, user_id: str, token: str) -> bool:
        """Checks with a read first, so that waiting costs no transactions."""
        lock, is_held = await self._lock_and_holder(user_id, now=self._clock())
        if is_held:
            return False
        mine = _Lock(token, self._database.owners.name, self._clock() + LOCK_SECONDS)
        return await self._take(user_id, mine, now=self._clock(), stale=lock)

    @reads
    def _lock_and_holder(self, connection: Connection, user_id: str, *, now: float) -> tuple[_Lock | None, bool]:
        """The lock, and whether somebody holds it who lives and has time."""
        lock = _lock_of(connection, user_id)
        if lock is None or lock.expires_at <= now:
            return lock, False
        return lock, not self._database.owners.is_dead(connection, lock.owner)

    @writes
    def _take(self, connection: Connection, user_id: str, mine: _Lock, *, now: float, stale: _Lock | None) -> bool:
        """Take the lock if it is free, or still the `stale` one that was read; otherwise False."""
        lock = _lock_of(connection, user_id)
        if is_closed(connection, now=now) or (lock is not None and (stale is None or lock.token != stale.token)):
            return False
        SQL.insert_user(connection, user_id=user_id, revision=erased_users.first_revision(connection, user_id))
        if lock is not None:  # from one odd number to the next: readers saw no settled state in between
            SQL.pass_revision(connection, user_id=user_id)
        SQL.take_lock(connection, token=mine.token, owner=mine.owner, expires_at=mine.expires_at, user_id=user_id)
        note_writer(connection, user_id)
        return True


class _HeldLock(DatedOnDatabase):
    """`memory.ports.LedgerWrite`."""

    def __init__(self, database: SqlDatabase, user_id: str, token: str, clock: Clock) -> None:
        self.touched: set[str] = set()
        self.is_touched = False
        self.is_ended = False
        self.announced: set[str] = set()
        super().__init__(database, clock=clock)
        self._user_id = user_id
        self._token = token
        self._renewed_at = clock()  # or a little later: `check_term` requires a renewal before it anyway

    def touch(self, memory_ids: Collection[str]) -> None:
        self.is_touched = True
        self.touched.update(memory_ids)

    async def renew(self) -> None:
        began_at = self._clock()
        until, new = began_at + LOCK_SECONDS, self.touched - self.announced
        if not await self._is_renewed(until=until, touched=new):
            raise Conflict("the user's lock was lost while it was held: nothing more may be written under it")
        self.announced |= new
        self._renewed_at = began_at

    def check_term(self) -> None:
        if self._clock() - self._renewed_at > LOCK_SECONDS * SENT_WITHIN_SHARE:
            raise Conflict("the user's lock is about to be lost, or is: nothing more may be written under it")

    @reads
    def forgotten(self, connection: Connection, memory_ids: Collection[str]) -> frozenset[str]:
        return frozenset(SQL.forgotten_among.column(connection, user_id=self._user_id, memory_ids=listed(memory_ids)))

    async def forget(self, memory_ids: Collection[str], *, raw_ids: Collection[str] = ()) -> None:
        if memory_ids:
            self.touch(memory_ids)
        await self.renew()
        await self._note_forgotten([*memory_ids, *raw_ids])

    async def advance_erase_epoch(self) -> None:
        if not await self._is_epoch_advanced(self._user_id, self._token, now=self._clock()):
            raise Conflict("the user's lock was lost while it was held: the erasure has to be repeated")
        self.is_ended = True

    _is_epoch_advanced = writing(erased_users.advance_erase_epoch)

    @writes
    def _is_renewed(self, connection: Connection, *, until: float, touched: Collection[str]) -> bool:
        """False if it was taken or repaired meanwhile; an expired one that nobody took is renewed.

        `touched` is announced: recorded under the revision that will be the next even one, also if the holder dies.
        """
        renewed = SQL.renew_lock(connection, until=until, user_id=self._user_id, token=self._token)
        if renewed.rowcount == 1 and touched:
            _note_changes(connection, self._user_id, touched, ahead=1)
        return renewed.rowcount == 1

    @writes
    def _note_forgotten(self, connection: Connection, memory_ids: Collection[str]) -> None:
        SQL.insert_forgotten(connection, user_id=self._user_id, memory_ids=listed(memory_ids))


@dataclass(frozen=True, slots=True)
class _Lock:
    token: str
    owner: str
    expires_at: float
    revision: int = 0


def holders(connection: Connection) -> set[str]:
    """The owners of all locks."""
    return set(SQL.lock_owners.column(connection))


def has_expired(connection: Connection, *, now: float) -> bool:
    """Whether any lock has been held for too long."""
    return SQL.expired_lock.exists(connection, now=now)


def repair(connection: Connection, dead_owners: Collection[str], *, now: float) -> None:
    """Free the locks of dead owners, and expired ones. What they may have written was announced (`renew`)."""
    freed = SQL.users_of_owners.column(connection, now=now, dead_owners=listed(dead_owners))
    SQL.free_locks(connection, now=now, dead_owners=listed(dead_owners))
    for user_id in freed:
        become_stale(connection, user_id)


def _lock_of(connection: Connection, user_id: str) -> _Lock | None:
    return SQL.lock_of_user.one(connection, lambda row: _Lock(*row), user_id=user_id)


def _let_go(connection: Connection, *, user_id: str, token: str, touched: Collection[str] | None) -> bool:
    """Make the revision even and record the changes. False if the lock was lost: all readers then load everything.

    `touched`: what was not announced; None if nothing was touched, so that the revision is again what it was.
    """
    lock = _lock_of(connection, user_id)
    if lock is None or lock.token != token:
        SQL.pass_lost_lock(connection, user_id=user_id)
        become_stale(connection, user_id)
        return False
    (revision,) = SQL.release_lock(connection, is_touched=touched is not None, user_id=user_id).fetchone()
    if revision > lock.revision:
        become_stale(connection, user_id)
    if touched is None:
        erased_users.forget_unknown(connection, user_id)
    else:
        _note_changes(connection, user_id, touched)
    return True


def _take_back(connection: Connection, *, user_id: str, token: str) -> None:
    """Undo a `_take` whose caller left before it got the result. Nothing was written under it."""
    lock = _lock_of(connection, user_id)
    if lock is not None and lock.token == token:
        _let_go(connection, user_id=user_id, token=token, touched=None)


def _note_changes(connection: Connection, user_id: str, touched: Collection[str], *, ahead: int = 0) -> None:
    """Record the changes under the user's revision, or one `ahead`; the oldest rows are deleted beyond the limit."""
    SQL.insert_changes(connection, ahead=ahead, touched=listed(sorted(touched)), user_id=user_id)
    surplus = SQL.revision_beyond_limit(connection, user_id=user_id, changes_max=CHANGES_MAX).fetchone()
    if surplus is not None:
        SQL.delete_changes(connection, user_id=user_id, revision=surplus[0])
        SQL.raise_known_since(connection, revision=surplus[0], user_id=user_id)
