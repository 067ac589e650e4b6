"""The names of the keys of turn log and ledger. All keys of one user share a hash tag, so that a script may use them.

A user's tag is a digest: ids may be long, and may hold braces. Global keys have tags of their own.
"""

from __future__ import annotations

import hashlib

QUEUE_SEQ = "memproxy:{queues}:seq"  # the order of opening, over all users
QUEUE_CHANGES = "memproxy:{queues}:changes"  # numbers changes of queues
QUEUE_USERS = "memproxy:{queues}:users"  # sorted set: users by their last change
SHED_LOCK = "memproxy:{shed}:lock"
OWNERS = "memproxy:{owners}:names"  # set: processes that hold something, or did when they died
LOCKED_USERS = "memproxy:{locks}:users"  # sorted set: users by the end of their lock


def heartbeat(owner: str) -> str:
    return f"memproxy:owner:{owner}"


def owned(owner: str) -> str:
    """Set: users for whom that process holds, or held, an open turn, a lease or the lock."""
    return f"memproxy:owned:{owner}"


def user_of_turn(turn_id: str) -> str:
    return f"memproxy:turn:{turn_id}"


class UserKeys:
    """The keys of one user."""

    def __init__(self, user_id: str) -> None:
        digest = hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._tag = f"memproxy:{{u:{digest}}}"

    @property
    def queue(self) -> str:
        """Hash: `v` the version, `q` the encoded queue. It stays when the queue is empty: versions never return."""
        return f"{self._tag}:queue"

    @property
    def turns(self) -> str:
        """Sorted set: ids of all recorded turns in the order of opening."""
        return f"{self._tag}:turns"

    def session(self, session_id: str) -> str:
        """Sorted set: ids of the session's turns."""
        return f"{self._tag}:session:{session_id}"

    @property
    def forget_requests(self) -> str:
        """Sorted set: ids of turns that ask to forget something."""
        return f"{self._tag}:forget_requests"

    def turn(self, turn_id: str) -> str:
        """Hash: `o` the turn as it began, `e` how it ended, `s` its stage, `f` claims of a request to forget."""
        return f"{self._tag}:turn:{turn_id}"

    def plan(self, window_id: str) -> str:
        return f"{self._tag}:plan:{window_id}"

    @property
    def ledger(self) -> str:
        """Hash: `v` the version, `l` the revision and the lock."""
        return f"{self._tag}:ledger"

    @property
    def changes(self) -> str:
        """Sorted set: ids of memories by the revision of their last change."""
        return f"{self._tag}:changes"

    @property
    def forgotten(self) -> str:
        """Set: ids of memories that were deleted permanently."""
        return f"{self._tag}:forgotten"

    @property
    def erased(self) -> str:
        """The erase epoch of a user, which outlives the user. It holds no id."""
        return f"{self._tag}:erased"
