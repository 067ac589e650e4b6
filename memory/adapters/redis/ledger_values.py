"""A user's revision and lock as one value, and its rules as pure functions. See `memory.ports.UserLedger`.

A revision is odd from the time the lock is taken until it is released. A lock whose holder is dead, or took too long,
is repaired: the number advances. What it may have written is known: a holder announces ids under the next even number
before it writes them.

- A holder that touched nothing returns the previous, even number, under which nothing that a reader holds has changed.
- If the holder dies, or loses the lock, the number advances as ever: it may have been about to touch something.
- Whoever releases a lock that it had lost makes all readers load everything: nobody knows when its last write came.
- An erased user goes on at a higher number that nobody has seen.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace


class UserLock(msgspec.Struct, frozen=True):
    token: str
    owner: str
    expires_at: float  # Unix seconds


class LedgerEntry(msgspec.Struct, frozen=True):
    """`known_since`: changes after that revision are all known; before it, they are not."""

    revision: int = 0
    known_since: int = 0
    lock: UserLock | None = None


class ErasedUser(msgspec.Struct, frozen=True):
    """The erase epoch of a user. `revision`: where the ledger goes on when the user returns."""

    erased_at: float
    times: int
    revision: int


def take(entry: LedgerEntry, mine: UserLock, *, stale: UserLock | None) -> LedgerEntry | None:
    """Take the lock if it is free, or still the `stale` one whose holder is dead or too slow; otherwise None."""
    if entry.lock is not None:
        if stale is None or entry.lock.token != stale.token:
            return None
        # from one odd number to the next: readers saw no settled state in between
        entry = replace(entry, revision=entry.revision + 1)
    return replace(entry, revision=entry.revision + 1, lock=mine)


def renew(entry: LedgerEntry, token: str, *, until: float, is_beyond: bool = False) -> LedgerEntry | None:
    """None if it was taken or repaired meanwhile; an expired one that nobody took is renewed.

    `is_beyond`: there are too many changes to announce, so that readers will have to load everything.
    """
    if entry.lock is None or entry.lock.token != token:
        return None
    known_since = entry.revision + 1 if is_beyond else entry.known_since
    return replace(entry, known_since=known_since, lock=replace(entry.lock, expires_at=until))


def let_go(entry: LedgerEntry, token: str, *, is_touched: bool) -> tuple[LedgerEntry, bool]:
    """Make the revision even. False if the lock was lost: all readers then load everything."""
    revision = entry.revision
    if entry.lock is None or entry.lock.token != token:
        return replace(entry, revision=revision + 2, known_since=revision + 2 + revision % 2), False
    is_passed = is_touched or entry.known_since >= revision
    return replace(entry, revision=revision + 1 if is_passed else revision - 1, lock=None), True


def repair(entry: LedgerEntry, dead_owner: str, *, now: float) -> LedgerEntry | None:
    """Free the lock of a dead owner, or an expired one. None if it is neither."""
    lock = entry.lock
    if lock is None or (lock.owner != dead_owner and lock.expires_at > now):
        return None
    return replace(entry, revision=entry.revision + 1, lock=None)


def erased(entry: LedgerEntry, before: ErasedUser | None, *, now: float) -> ErasedUser:
    """The epoch with which this life of the user ends."""
    revision = entry.revision + 2 + entry.revision % 2
    if before is None:
        return ErasedUser(now, 1, revision)
    return ErasedUser(max(before.erased_at, now), before.times + 1, max(before.revision, revision))


def refusing(before: ErasedUser | None, *, until: float) -> ErasedUser:
    """What began until then is not stored any more, though this life has not ended yet."""
    return ErasedUser(until, 0, 0) if before is None else replace(before, erased_at=max(before.erased_at, until))


def trimmed(entry: LedgerEntry, surplus: int | None) -> LedgerEntry:
    """The changes up to revision `surplus` were deleted, for there are too many."""
    return entry if surplus is None else replace(entry, known_since=max(entry.known_since, surplus))


def is_known(entry: LedgerEntry, number: int) -> bool:
    """Whether all changes after that revision are known. A larger number comes from another deployment."""
    return entry.known_since <= number <= entry.revision


def has_written(before: LedgerEntry, after: LedgerEntry) -> bool:
    """Whether a write has ended between the two."""
    return after.revision % 2 == 0 and after.revision > before.revision


def settled(entry: LedgerEntry) -> int:
    """The revision that readers have seen last: a write that has not ended yet is not in it."""
    return entry.revision - entry.revision % 2
