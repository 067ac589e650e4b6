"""The names of the keys on Redis. All keys of one user share a hash tag, so that a script may use them.

A user's tag is a digest: ids may be long, and may hold braces. Global keys have tags of their own, and name users by
the same digest: what is left in them of a user that was erased names nobody.
"""

from __future__ import annotations

import hashlib
from typing import Self

QUEUE_SEQ = "memproxy:{queues}:seq"  # the order of opening, over all users
QUEUE_CHANGES = "memproxy:{queues}:changes"  # numbers changes of queues
QUEUE_USERS = "memproxy:{queues}:users"  # sorted set: digests of users by their last change
SHED_LOCK = "memproxy:{shed}:lock"
OWNERS = "memproxy:{owners}:names"  # set: processes that are alive, or were and may hold something
LEFT_OWNERS = "memproxy:{owners}:left"  # set: of those, who ended in order
LOCKED_USERS = "memproxy:{locks}:users"  # sorted set: digests of users by the end of their lock
BARRIER_WRITERS = "memproxy:{barriers}:writers"  # hash: while it is there, nobody may take a user's lock
BARRIER_ALONE = "memproxy:{barriers}:alone"  # hash: one process is at work that others must not do
NOTED_WRITERS = "memproxy:{barriers}:noted"  # set: users whose locks were held meanwhile
STALE_PROFILES = "stale_profiles"  # indexes of users, by their hash tags
UNWRITTEN_PROFILES = "unwritten_profiles"
DUE_SUMMARIES = "due_summaries"
WITHDRAWN_SUMMARIES = "withdrawn_summaries"
REMOVED_WORDS = "removed_words"
EXPIRING = "expiring"
SHIFTS = "shifts"
PENDING_ERASURES = "pending_erasures"  # of erasures, whose files wait to be rewritten
ERASURES = ("memproxy:{erasures}:places", "memproxy:{erasures}:number")  # ids of all, in the order of their beginning
NO_PROFILES = "memproxy:{stale_profiles}:off"  # there while the deployment builds none

_SNAPSHOTS = "memproxy:{snapshots}"
SNAPSHOTS = (f"{_SNAPSHOTS}:used", f"{_SNAPSHOTS}:sizes", f"{_SNAPSHOTS}:bytes")  # digests by last use, sizes, sum
RECORDERS = "memproxy:{recorders}:last"  # hash: `v` the version, `l` the last beats of processes that record
RECORDING_GAPS = "memproxy:{recorders}:gaps"  # list: times in which nobody recorded
NEW_USERS = "memproxy:{rounds}:new"  # set: digests of users of whom no round of upkeep knows yet
ROUNDS = ("memproxy:{rounds}:ended", "memproxy:{rounds}:begun")  # sorted sets: digests of users by time
DIGEST_KEY = "memproxy:{exchanges}:digest_key"  # of what users said: random, made with the first digest
OPT_OUTS = "memproxy:{opt_outs}:since"  # hash: since when, by digest
NOTES, RECEIPTS, CHAINS, STATES, CALLS = SHELVES = ("notes", "receipts", "chains", "states", "calls")


def heartbeat(owner: str) -> str:
    """All on one node: where that of another cannot be written, ours cannot either, and nobody is dead for it."""
    return f"memproxy:{{owners}}:beat:{owner}"


def owned(owner: str) -> str:
    """Set: digests of users for whom that process holds, or held, an open turn, a lease or the lock."""
    return f"memproxy:owned:{owner}"


def user_of_turn(turn_id: str) -> str:
    """The digest of the user whose turn it is."""
    return f"memproxy:turn:{turn_id}"


def erasure(erasure_id: str) -> str:
    """Hash: four fields (`erasures`)."""
    return f"memproxy:erasure:{erasure_id}"


def erasures_of(digest: str) -> str:
    """Sorted set: ids of the erasures of one user, in the order of their beginning. On the node of those of all."""
    return f"memproxy:{{erasures}}:of_user:{digest}"


def digest_of(text: str) -> str:
    """As much of SHA-256 as no two ids have in common by chance."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class UserKeys:
    """The keys of one user."""

    def __init__(self, user_id: str) -> None:
        self.digest = digest_of(user_id)

    @classmethod
    def of_digest(cls, digest: str) -> Self:
        keys = cls("")
        keys.digest = digest
        return keys

    @property
    def _tag(self) -> str:
        return f"memproxy:{{u:{self.digest}}}"

    @property
    def user(self) -> str:
        """The user's id: indexes of all users hold digests only."""
        return f"{self._tag}:id"

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

    @property
    def turn_heads(self) -> str:
        """Hash by turn: its beginning without texts."""
        return f"{self._tag}:turn_heads"

    @property
    def turn_ends(self) -> str:
        """Hash by turn: its end without texts."""
        return f"{self._tag}:turn_ends"

    @property
    def arrivals(self) -> str:
        """Sorted set: turns and added messages by the time at which they reached us (`arrivals`)."""
        return f"{self._tag}:arrivals"

    @property
    def deleted_names(self) -> str:
        """Set: deleted turns that may still be named over all users."""
        return f"{self._tag}:deleted_names"

    @property
    def messages(self) -> str:
        """Hash: texts of messages that are no part of a turn's own."""
        return f"{self._tag}:messages"

    @property
    def message_heads(self) -> str:
        """Hash: those messages without their texts."""
        return f"{self._tag}:message_heads"

    @property
    def message_places(self) -> str:
        """Sorted set: their ids in the order of arrival."""
        return f"{self._tag}:message_places"

    def conversation(self, conversation_id: str) -> str:
        """Sorted set: ids of those of one conversation, likewise."""
        return f"{self._tag}:conversation:{conversation_id}"

    def tools(self, turn_id: str) -> str:
        """Sorted set: ids of the tool traffic of one turn, likewise."""
        return f"{self._tag}:tools:{turn_id}"

    @property
    def branches(self) -> str:
        """Hash: positions of turns in their conversations, by turn."""
        return f"{self._tag}:branches"

    @property
    def branch_index(self) -> str:
        """Sorted set: by what positions are found (`branch_values`)."""
        return f"{self._tag}:branch_index"

    @property
    def branch_places(self) -> str:
        """Sorted set: turns with a position, and what is left out, in the order of recording."""
        return f"{self._tag}:branch_places"

    @property
    def exchanges(self) -> str:
        """Sorted set: digests of what the user said, with the turn in which it was (`known_exchanges`)."""
        return f"{self._tag}:exchanges"

    @property
    def exchange_places(self) -> str:
        """Sorted set: the same in the order of recording."""
        return f"{self._tag}:exchange_places"

    @property
    def no_beginnings(self) -> str:
        """There once conversations were erased: none is filled in from its beginning. It outlives the user."""
        return f"{self._tag}:no_beginnings"

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

    @property
    def profiles(self) -> str:
        """Hash: profiles by the digest of their project, and `b` the revision from which they were built."""
        return f"{self._tag}:profiles"

    @property
    def projects(self) -> str:
        """Set: keys of the shared projects of which the user may be a member."""
        return f"{self._tag}:projects"

    @property
    def invitations(self) -> str:
        """Set: keys of the shared projects to which the user may be invited."""
        return f"{self._tag}:invitations"

    @property
    def sent_invitations(self) -> str:
        """Set: keys of the shared projects to which the user may have invited others."""
        return f"{self._tag}:sent_invitations"

    @property
    def read_projects(self) -> str:
        """Set: keys of the shared projects among whose readers the user may be."""
        return f"{self._tag}:read_projects"

    @property
    def authored(self) -> str:
        """Set: ids of memories of shared projects whose author the user may be."""
        return f"{self._tag}:authored"

    @property
    def summaries(self) -> str:
        """Hash: the current summaries by session."""
        return f"{self._tag}:summaries"

    @property
    def summary_heads(self) -> str:
        """Hash by session: which summary was made last, whether it is current or gone."""
        return f"{self._tag}:summary_heads"

    @property
    def due_summaries(self) -> str:
        """Hash: three fields for each session that has changed since its summary (`session_events`)."""
        return f"{self._tag}:due_summaries"

    @property
    def withdrawn_summaries(self) -> str:
        """Hash: versions of earlier summaries that are gone, by series and session."""
        return f"{self._tag}:withdrawn_summaries"

    @property
    def in_no_summary(self) -> str:
        """Set: turns that say what was forgotten or withheld, or that asked for that."""
        return f"{self._tag}:in_no_summary"

    @property
    def removed_words(self) -> str:
        """Set: turns whose words left the record while the store may hold rows with them."""
        return f"{self._tag}:removed_words"

    def shelf(self, kind: str) -> tuple[str, str, str, str]:
        """Values by name, names by place, the bytes of all values, and marks (`shelves`)."""
        values = f"{self._tag}:{kind}"
        return values, f"{values}:places", f"{values}:bytes", f"{values}:marks"

    @property
    def snapshot(self) -> str:
        """The user's working set."""
        return f"{self._tag}:snapshot"

    @property
    def uses(self) -> tuple[str, str, str]:
        """By memory: uses that are not in the store, the sum on its way there, and the time of the last use."""
        return f"{self._tag}:uses", f"{self._tag}:uses:total", f"{self._tag}:uses:at"

    @property
    def of_summaries(self) -> tuple[str, ...]:
        return (
            self.summaries,
            self.summary_heads,
            self.due_summaries,
            self.withdrawn_summaries,
            self.in_no_summary,
        )

    @property
    def of_trees(self) -> tuple[str, ...]:
        return (self.branches, self.branch_index, self.branch_places, self.exchanges, self.exchange_places)

    @property
    def of_one_life(self) -> tuple[str, ...]:
        """What the end of a user's life deletes in one step, beside the entry of the ledger.

        The sets of what may concern them in projects name nobody, and may be those of their next life already.
        """
        shelves = (key for kind in SHELVES for key in self.shelf(kind))
        ledger = (self.user, self.changes, self.forgotten, self.profiles, self.removed_words)
        return (*ledger, self.snapshot, *self.uses, *shelves, *self.of_summaries, *self.of_trees)
