"""The rules of the queue as jobs on a connection: what becomes ready, what is due, who holds it, how it ends.

Every function here runs inside one transaction of the writer (`find_due` and the counts also on the reader) and never
commits, sleeps or asks a clock. Two rules carry the rest:

- one user, one live lease: what a user said is learnt in order, and two workers never plan for the same user;
- a window keeps its turns and its id from its first lease to its last. While it is leased or waits for a retry, later
  turns of *its session* wait behind it; other sessions of the user go on, and a dead window holds up nobody. Only what
  the user asks of memory, to forget or to remember, goes past a window that waits for its time, with turns before it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory.adapters.sql import known_exchanges, turn_effects
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_rows import fitting, turn_of, values_of
from memory.errors import Conflict
from memory.model import Turn, TurnStatus
from memory.ports import LearnDue, Lease

SQL = statements("turns_queue")

TOKEN_BYTES = 4  # approximate UTF-8 bytes per token, to estimate how much is waiting
WINDOW_BYTES_MAX = 4 << 20  # of text in one window; a single turn is always included, however large
REASON_CHARACTERS_MAX = 500  # of the reason of a retry or dead letter

# turns of other statuses are recorded but not learnt
TAUGHT = {TurnStatus.CLOSED, TurnStatus.UNKNOWN, TurnStatus.FILLED_IN}


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Who takes the lease, and until when. `process`: its name among the owners of the database."""

    token: str
    process: str
    until: float


@dataclass(frozen=True, slots=True)
class DueWork:
    """The next work: a window that was leased before, or (window_id "") the ready turns of a session up to
    `last_seq`.
    """

    window_id: str
    user_id: str
    session_id: str
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class ReadyTurn:
    """The data of a turn needed to put it into a window. `size`: bytes of messages and answer."""

    seq: int
    id: str
    finished_at: float
    size: int


def stage_of(status: TurnStatus) -> str:
    """Where a turn of that status begins."""
    if status is TurnStatus.OPENED:
        return "open"
    return "ready" if status in TAUGHT else "nothing"


def window_id_of(user_id: str, session_id: str, turn_ids: Iterable[str]) -> str:
    """The same turns of a session always give the same id, on every machine; ids of memories are derived from it."""
    seed = "\x1f".join((user_id, session_id, *turn_ids))
    return "w-" + hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def insert_turn(connection: Connection, turn: Turn, *, now: float, owner: str, stage: str = "") -> None:
    """A known id changes nothing. `stage`: "" for that which follows from the turn's status."""
    stage = stage or stage_of(turn.status)
    finished_at = None if turn.status is TurnStatus.OPENED else now
    inserted = SQL.insert_turn(
        connection, **values_of(turn, opened_at=now, finished_at=finished_at, stage=stage, owner=owner)
    ).fetchone()
    if inserted is None:
        return
    if finished_at is not None:
        turn_effects.turn_ended(connection, turn.scope.user_id, turn.scope.session_id, at=finished_at)
    known_exchanges.remember(connection, turn)
    if stage == "ready":
        make_ready(connection, inserted[0], turn.scope.user_id, turn.scope.session_id, now)


def make_ready(connection: Connection, seq: int, user_id: str, session_id: str, finished_at: float) -> None:
    """A turn has ended and will be learnt: add it to its session."""
    SQL.add_to_session(connection, user_id=user_id, session_id=session_id, seq=seq, finished_at=finished_at)


def find_due(connection: Connection, *, now: float, due: LearnDue) -> DueWork | None:
    """Urgent turns, else the oldest due window or session, of a user without a live lease. Changes nothing."""
    urgent = SQL.urgent_session(connection, now=now).fetchone() or SQL.asked_session(connection, now=now).fetchone()
    if urgent is not None:
        return DueWork(*urgent)
    gathered = SQL.gathered_session(
        connection,
        now=now,
        turns=due.turns_at_once,
        idle=due.idle_seconds,
        bytes=None if due.tokens_at_once is None else due.tokens_at_once * TOKEN_BYTES,
    ).fetchone()
    found = [row for row in (SQL.due_window(connection, now=now).fetchone(), gathered) if row]
    return min((DueWork(*row) for row in found), key=lambda work: work.first_seq, default=None)


def take(connection: Connection, *, now: float, due: LearnDue, owner: LeaseOwner) -> Lease | None:
    """Lease the next due work; ready turns become a window that does not change any more."""
    work = find_due(connection, now=now, due=due)
    if work is None:
        return None
    window_id = work.window_id or _fix_window(connection, work, due.batch_turns_max)
    SQL.lease_window(connection, until=owner.until, token=owner.token, owner=owner.process, window_id=window_id)
    attempt, *others = SQL.leased_window(connection, window_id=window_id).fetchone()
    turns = tuple(turn_of(row) for row in SQL.turns_of_window(connection, window_id=window_id))
    return Lease(window_id, work.user_id, work.session_id, turns, attempt, owner.token, *others)


def _fix_window(connection: Connection, work: DueWork, turns_max: int) -> str:
    rows = SQL.ready_turns(
        connection, user_id=work.user_id, session_id=work.session_id, last_seq=work.last_seq, limit=max(1, turns_max)
    ).fetchall()
    ready = (ReadyTurn(*row) for row in rows)
    chosen = list(fitting(ready, lambda turn: turn.size, bytes_max=WINDOW_BYTES_MAX))
    return make_window(connection, work.user_id, work.session_id, chosen)


def make_window(connection: Connection, user_id: str, session_id: str, turns: Sequence[ReadyTurn]) -> str:
    """Make one window of these ready turns, in order; returns its id. It has no lease yet."""
    window_id = window_id_of(user_id, session_id, (turn.id for turn in turns))
    SQL.insert_window(
        connection,
        window_id=window_id,
        user_id=user_id,
        session_id=session_id,
        seq=turns[0].seq,
        turns=len(turns),
        finished_at=min(turn.finished_at for turn in turns),
    )
    SQL.put_into_window.many(connection, [{"window_id": window_id, "seq": turn.seq} for turn in turns])
    recount_session(connection, user_id, session_id, turns=len(turns), size=sum(turn.size for turn in turns))
    return window_id


def recount_session(connection: Connection, user_id: str, session_id: str, *, turns: int, size: int) -> None:
    """Subtract turns that are no longer ready, and their bytes, from a session's counts."""
    first = SQL.first_ready(connection, user_id=user_id, session_id=session_id).fetchone()
    if first is None:
        SQL.delete_session(connection, user_id=user_id, session_id=session_id)
        return
    first_seq, first_finished_at = first
    SQL.shrink_session(
        connection,
        turns=turns,
        size=size,
        first_seq=first_seq,
        first_finished_at=first_finished_at,
        user_id=user_id,
        session_id=session_id,
    )


def extend(connection: Connection, lease: Lease, *, until: float) -> None:
    """An expired lease can be extended only if no other worker has started for that user."""
    assert_held(connection, lease)
    if SQL.rival_lease.exists(connection, user_id=lease.user_id, window_id=lease.window_id):
        raise Conflict("the lease has ended and another worker has begun to work for this user")
    SQL.extend_lease(connection, until=until, window_id=lease.window_id)


def save_plan(connection: Connection, lease: Lease, plan: bytes) -> None:
    assert_held(connection, lease)
    SQL.set_plan(connection, plan=plan, window_id=lease.window_id)


def acknowledge(connection: Connection, lease: Lease) -> None:
    assert_held(connection, lease)
    end_window(connection, lease.window_id, stage="learnt")


def end_window(connection: Connection, window_id: str, *, stage: str) -> None:
    """Delete the window and its plan; its turns stay in the record with its id."""
    ended = SQL.end_turns(connection, stage=stage, window_id=window_id).fetchall()
    if stage == "learnt" and ended:
        (user_id, session_id, _), *_ = ended
        turn_effects.turns_learnt(connection, user_id, session_id, finished_at=max(at for *_, at in ended))
    SQL.delete_window(connection, window_id=window_id)


def retry_at(
    connection: Connection, lease: Lease, *, due_at: float, reason: str, outage_since: float | None = None
) -> None:
    assert_held(connection, lease)
    SQL.return_window(
        connection,
        due_at=due_at,
        reason=reason[:REASON_CHARACTERS_MAX],
        uncounted=int(outage_since is not None),
        outage_since=outage_since,
        window_id=lease.window_id,
    )


def take_back(connection: Connection, token: str) -> None:
    """Undo a `take` whose caller left before it got the result."""
    SQL.undo_lease(connection, token=token)


def move_to_dead_letters(connection: Connection, lease: Lease, *, now: float, reason: str) -> None:
    assert_held(connection, lease)
    SQL.bury_window(connection, now=now, reason=reason[:REASON_CHARACTERS_MAX], window_id=lease.window_id)


def assert_held(connection: Connection, lease: Lease) -> None:
    if not SQL.held_lease.exists(connection, window_id=lease.window_id, token=lease.token):
        raise Conflict("the lease is no longer ours")
