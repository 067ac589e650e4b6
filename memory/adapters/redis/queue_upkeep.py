"""Changes to one user's queue from outside of learning: users delete, operators decide, too much waits. Pure functions.

See `user_queue` for the rules. None of them takes a lease or ends one as learnt.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from memory.adapters.redis import user_queue
from memory.adapters.redis.queue_values import GIVEN_UP, UNLEARNT, QueueChange, QueuedWindow, UserQueue, WaitingTurn
from memory.adapters.turn_rules import SHED_REASON, window_id_of


def replay(queue: UserQueue, window_ids: Collection[str]) -> tuple[QueueChange, int]:
    """Keeps the plan: a window that was partly applied must be completed with the same plan. Empty means all."""
    chosen = {
        window.id
        for window in queue.windows
        if window.state in GIVEN_UP and (not window_ids or window.id in window_ids)
    }
    windows = tuple(
        replace(window, state="waiting", due_at=0.0, attempt=0, outages=0, outage_since=None, buried_at=0.0)
        if window.id in chosen
        else window
        for window in queue.windows
    )
    return QueueChange(replace(queue, windows=windows)), len(chosen)


def drop(queue: UserQueue, window_ids: Collection[str]) -> tuple[QueueChange, int]:
    """Empty means none."""
    chosen = [window.id for window in queue.windows if window.state in GIVEN_UP and window.id in window_ids]
    stages: dict[str, str] = {}
    for window_id in chosen:
        change = user_queue.end_window(queue, window_id, stage="dropped")
        queue = change.queue
        stages |= change.stages
    return QueueChange(queue, stages), len(chosen)


def shed(queue: UserQueue, session_id: str, turn_ids: Sequence[str], *, now: float) -> QueueChange | None:
    """None if one of the turns is no longer what it was when it was chosen."""
    chosen = [turn for turn in queue.ready(session_id) if turn.id in turn_ids]
    if len(chosen) != len(turn_ids) or any(turn.worth is None or turn.is_explicit for turn in chosen):
        return None
    queue, window_id = user_queue.make_window(queue, session_id, chosen)
    window = queue.window(window_id)
    assert window is not None  # just made
    given_up = replace(window, state="shed", buried_at=now, reason=SHED_REASON)
    return QueueChange(user_queue.with_window(queue, window_id, given_up))


def withdraw(
    queue: UserQueue,
    *,
    project_id: str,
    opened_before: float,
    only: Collection[str],
    spare: Collection[str],
) -> tuple[QueueChange, int]:
    """Includes open turns: they stay until their replies end, for the record, but are not learnt."""
    chosen = [
        turn
        for turn in queue.turns
        if turn.stage != "withdrawn"
        and turn.opened_at < opened_before
        and project_id in ("", turn.project_id)
        and (not only or turn.id in only)
        and turn.id not in spare
    ]
    return _take_out(queue, chosen, stage="withdrawn"), len(chosen)


def abandon(queue: UserQueue, turn_ids: Collection[str]) -> QueueChange:
    """The client left these turns' branch. Open ones stay until their replies end, as those that are withdrawn."""
    chosen = [turn for turn in queue.turns if turn.id in turn_ids and turn.stage in UNLEARNT]
    return _take_out(queue, chosen, stage="abandoned")


def resume(queue: UserQueue, turn: WaitingTurn) -> QueueChange:
    """The client is back on the branch of a turn that was abandoned before it was learnt."""
    others = tuple(one for one in queue.turns if one.id != turn.id)
    turns = tuple(sorted((*others, turn), key=lambda one: one.seq))
    return QueueChange(replace(queue, turns=turns), {turn.id: ""})


def delete(queue: UserQueue, turn_ids: Collection[str]) -> QueueChange:
    """Nothing of these turns is left, and so no stage of theirs is written."""
    change = _take_out(queue, [turn for turn in queue.turns if turn.id in turn_ids], stage="withdrawn")
    return QueueChange(user_queue.without(change.queue, dict.fromkeys(turn_ids, "withdrawn")).queue)


def _take_out(queue: UserQueue, chosen: Sequence[WaitingTurn], *, stage: str) -> QueueChange:
    still_open = [replace(turn, stage=stage) for turn in chosen if turn.is_open]
    gone = {turn.id: stage for turn in chosen if not turn.is_open}
    queue = user_queue.without(user_queue.with_turns(queue, still_open), gone).queue
    for window_id in sorted({turn.window_id for turn in chosen if turn.stage == "window"}):
        queue = _renew_window(queue, window_id)
    return QueueChange(queue, {turn.id: stage for turn in chosen})


def _renew_window(queue: UserQueue, window_id: str) -> UserQueue:
    """Some of its turns were withdrawn: the rest becomes a window with another id, without a plan.

    The old plan may contain what was just deleted; the holder of the old lease gets a `Conflict`.
    """
    left = queue.turns_of(window_id)
    window = queue.window(window_id)
    assert window is not None  # it had turns
    if not left:
        return user_queue.with_window(queue, window_id, None)
    renewed = window_id_of(queue.user_id, window.session_id, (turn.id for turn in left))
    moved = user_queue.with_turns(queue, [replace(turn, window_id=renewed) for turn in left])
    return user_queue.with_window(moved, window_id, _begun_again(window, renewed))


def _begun_again(window: QueuedWindow, renewed_id: str) -> QueuedWindow:
    is_leased = window.state == "leased"
    return replace(
        window,
        id=renewed_id,
        has_plan=False,
        token="",
        owner="",
        due_at=0.0 if is_leased else window.due_at,
        attempt=window.attempt if window.state in GIVEN_UP else 0,
        state="waiting" if is_leased else window.state,
    )
