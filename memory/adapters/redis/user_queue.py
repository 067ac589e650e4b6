"""The rules of one user's queue: how turns become ready, who holds a window, and how it ends. Pure functions.

Two rules carry the rest, as on every adapter:

- one user, one live lease: what a user said is learnt in order, and two workers never plan for the same user;
- a window keeps its turns and its id from its first lease to its last.

A transition returns the queue after it; whoever commits it compares what was read. It raises `Conflict` if the lease
is no longer held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from memory.adapters.redis.queue_choice import DueChoice
from memory.adapters.redis.queue_values import (
    QueueChange,
    QueuedWindow,
    SessionMark,
    UserQueue,
    WaitingTurn,
)
from memory.adapters.turn_rules import REASON_CHARACTERS_MAX, WINDOW_BYTES_MAX, Holder, stage_after, window_id_of
from memory.errors import Conflict
from memory.model import TurnStatus, Urgency
from memory.ports import Lease


def add(queue: UserQueue, turn: WaitingTurn) -> QueueChange:
    """A turn begins, or (imported) has ended already. A known id changes nothing."""
    if queue.turn(turn.id) is not None:
        return QueueChange(queue)
    return QueueChange(replace(queue, turns=_in_order((*queue.turns, turn))))


def finish(queue: UserQueue, turn_id: str, *, status: TurnStatus, answer_bytes: int, now: float) -> QueueChange | None:
    """None for a turn that is not open. A withdrawn or abandoned one stays so, and leaves the queue."""
    turn = queue.turn(turn_id)
    if turn is None or not turn.is_open:
        return None
    stage = stage_after(status) if turn.stage == "open" else turn.stage
    if stage != "ready":
        return without(queue, {turn_id: stage})
    ready = replace(turn, stage=stage, is_open=False, owner="", finished_at=now, size=turn.size + answer_bytes)
    return QueueChange(with_turns(queue, [ready]))


def grow(queue: UserQueue, turn_id: str, *, answer_bytes: int) -> QueueChange:
    """The turn got its answer later, which also counts in the bytes of its session."""
    turn = queue.turn(turn_id)
    return QueueChange(queue if turn is None else with_turns(queue, [replace(turn, size=turn.size + answer_bytes)]))


def release(queue: UserQueue, owner: str, *, now: float) -> QueueChange:
    """The owner is dead: its open turns become unknown and ready, and its leases end now."""
    opened = [turn for turn in queue.turns if turn.is_open and turn.owner == owner]
    ready = [
        replace(turn, stage="ready", is_open=False, owner="", finished_at=now)
        for turn in opened
        if turn.stage == "open"
    ]
    windows = tuple(
        replace(window, due_at=min(window.due_at, now))
        if window.state == "leased" and window.owner == owner
        else window
        for window in queue.windows
    )
    change = without(
        replace(with_turns(queue, ready), windows=windows),
        {turn.id: turn.stage for turn in opened if turn.stage != "open"},
    )
    return QueueChange(change.queue, change.stages, tuple(turn.id for turn in opened), now)


def take(queue: UserQueue, work: DueChoice, *, turns_max: int, holder: Holder) -> tuple[QueueChange, str]:
    """Lease this due work; ready turns become a window that does not change any more. Also the window's id."""
    window_id = work.window_id
    if not window_id:
        queue, window_id = _fix_window(queue, work, turns_max)
    window = queue.window(window_id)
    assert window is not None  # the choice was made from this queue
    leased = replace(
        window,
        state="leased",
        due_at=holder.until,
        attempt=window.attempt + 1,
        token=holder.token,
        owner=holder.owner,
    )
    return QueueChange(with_window(queue, window_id, leased)), window_id


def _fix_window(queue: UserQueue, work: DueChoice, turns_max: int) -> tuple[UserQueue, str]:
    ready = [turn for turn in queue.ready(work.session_id) if turn.seq <= work.last_seq][: max(1, turns_max)]
    chosen: list[WaitingTurn] = []
    room = WINDOW_BYTES_MAX
    for turn in ready:
        room -= turn.size
        if chosen and room < 0:
            break
        chosen.append(turn)
    return make_window(queue, work.session_id, chosen)


def make_window(queue: UserQueue, session_id: str, turns: Sequence[WaitingTurn]) -> tuple[UserQueue, str]:
    """Make one window of these ready turns, in order; also its id. It has no lease yet."""
    window_id = window_id_of(queue.user_id, session_id, (turn.id for turn in turns))
    is_asked = queue.mark(session_id).asked_seq >= turns[0].seq
    moved = with_turns(queue, [replace(turn, stage="window", window_id=window_id) for turn in turns])
    window = QueuedWindow(window_id, session_id, is_asked=is_asked)
    return _with_marks_of_ready(replace(moved, windows=(*moved.windows, window))), window_id


def held(queue: UserQueue, lease: Lease) -> QueuedWindow:
    """The window of the lease. Raises `Conflict` if it is no longer held."""
    window = queue.window(lease.window_id)
    if window is None or window.state != "leased" or window.token != lease.token:
        raise Conflict("the lease is no longer ours")
    return window


def extend(queue: UserQueue, lease: Lease, *, until: float) -> QueueChange:
    """An expired lease can be extended only if no other worker has started for that user."""
    window = held(queue, lease)
    if any(other.state == "leased" and other.due_at > window.due_at for other in queue.windows if other is not window):
        raise Conflict("the lease has ended and another worker has begun to work for this user")
    return QueueChange(with_window(queue, window.id, replace(window, due_at=until)))


def plan(queue: UserQueue, lease: Lease) -> QueueChange:
    """The plan itself is in a key of its own, which is written in the same step."""
    return QueueChange(with_window(queue, lease.window_id, replace(held(queue, lease), has_plan=True)))


def acknowledge(queue: UserQueue, lease: Lease) -> QueueChange:
    return end_window(queue, held(queue, lease).id, stage="learnt")


def end_window(queue: UserQueue, window_id: str, *, stage: str) -> QueueChange:
    return without(with_window(queue, window_id, None), {turn.id: stage for turn in queue.turns_of(window_id)})


def give_back(queue: UserQueue, lease: Lease, *, due_at: float, reason: str, outage_since: float | None) -> QueueChange:
    window = held(queue, lease)
    is_outage = outage_since is not None
    waiting = replace(
        window,
        state="waiting",
        due_at=due_at,
        reason=reason[:REASON_CHARACTERS_MAX],
        token="",
        owner="",
        attempt=window.attempt - is_outage,
        outages=window.outages + 1 if is_outage else 0,
        outage_since=outage_since,
    )
    return QueueChange(with_window(queue, window.id, waiting))


def take_back(queue: UserQueue, token: str) -> QueueChange:
    """Undo a `take` whose caller left before it got the result."""
    windows = tuple(
        replace(window, state="waiting", due_at=0.0, attempt=window.attempt - 1, token="", owner="")
        if window.state == "leased" and window.token == token
        else window
        for window in queue.windows
    )
    return QueueChange(replace(queue, windows=windows))


def bury(queue: UserQueue, lease: Lease, *, now: float, reason: str) -> QueueChange:
    window = held(queue, lease)
    dead = replace(window, state="dead", buried_at=now, reason=reason[:REASON_CHARACTERS_MAX], token="", owner="")
    return QueueChange(with_window(queue, window.id, dead))


def mark(queue: UserQueue, urgencies: Mapping[str, Urgency]) -> QueueChange:
    """Only the first mark of a ready turn counts; ids of other turns are ignored."""
    for turn_id, urgency in urgencies.items():
        turn = queue.turn(turn_id)
        if turn is None or turn.stage != "ready" or turn.worth is not None:
            continue
        marked = replace(turn, worth=urgency.worth, is_explicit=urgency.is_explicit)
        urgent_seq = turn.seq if urgency.is_explicit else turn.seq - 1 if urgency.ends_topic else 0
        asked_seq = turn.seq if urgency.asks_memory else 0
        queue = _raise_mark(with_turns(queue, [marked]), turn.session_id, urgent_seq=urgent_seq, asked_seq=asked_seq)
    return QueueChange(queue)


def make_due_now(queue: UserQueue, session_id: str) -> QueueChange:
    """`session_id`: "" for all."""
    last = {turn.session_id: turn.seq for turn in queue.turns if turn.stage == "ready"}
    for ready_session, seq in last.items():
        if session_id in ("", ready_session):
            queue = _raise_mark(queue, ready_session, urgent_seq=seq)
    return QueueChange(queue)


def _raise_mark(queue: UserQueue, session_id: str, *, urgent_seq: int = 0, asked_seq: int = 0) -> UserQueue:
    """A mark never makes an earlier turn less urgent."""
    old = queue.mark(session_id)
    raised = SessionMark(session_id, max(old.urgent_seq, urgent_seq), max(old.asked_seq, asked_seq))
    others = tuple(one for one in queue.marks if one.session_id != session_id)
    return replace(queue, marks=others if raised == SessionMark(session_id) else (*others, raised))


def _with_marks_of_ready(queue: UserQueue) -> UserQueue:
    """A mark ends with the last ready turn of its session: later turns wait as usual."""
    sessions = {turn.session_id for turn in queue.turns if turn.stage == "ready"}
    return replace(queue, marks=tuple(one for one in queue.marks if one.session_id in sessions))


def with_turns(queue: UserQueue, changed: Sequence[WaitingTurn]) -> UserQueue:
    by_id = {turn.id: turn for turn in changed}
    return replace(queue, turns=tuple(by_id.get(turn.id, turn) for turn in queue.turns)) if changed else queue


def without(queue: UserQueue, stages: Mapping[str, str]) -> QueueChange:
    left = replace(queue, turns=tuple(turn for turn in queue.turns if turn.id not in stages))
    return QueueChange(_with_marks_of_ready(left), dict(stages))


def with_window(queue: UserQueue, window_id: str, changed: QueuedWindow | None) -> UserQueue:
    windows = (changed if window.id == window_id else window for window in queue.windows)
    return replace(queue, windows=tuple(window for window in windows if window is not None))


def _in_order(turns: Sequence[WaitingTurn]) -> tuple[WaitingTurn, ...]:
    return tuple(sorted(turns, key=lambda turn: turn.seq))
