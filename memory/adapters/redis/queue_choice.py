"""Which window of which user is due, which turns nobody has examined, and what is shed. Pure functions.

Each looks at a replica of the users' queues; what it chooses is decided again from what is read when it is committed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory.adapters.redis.queue_values import GIVEN_UP, LEFT, LIVE, QueuedWindow, UserQueue, WaitingTurn
from memory.adapters.turn_rules import EARLIER_BYTES_MAX, EARLIER_TURNS, LOOK_BYTES_MAX, TOKEN_BYTES
from memory.ports import Backlog, DeadLetter, LearnDue, QueueDepth

ANY_SEQ = 1 << 62  # after every turn
URGENT, ASKED, GATHERED = range(3)  # the order in which work is chosen


@dataclass(frozen=True, slots=True, order=True)
class DueChoice:
    """The next work of a user: a window that was leased before, or (window_id "") the ready turns of a session up to
    `last_seq`. The least of several goes first.
    """

    rank: int
    first_seq: int
    user_id: str
    session_id: str
    window_id: str = ""
    last_seq: int = ANY_SEQ


@dataclass(frozen=True, slots=True)
class ReadySession:
    """The ready turns of a session, summed up."""

    session_id: str
    first_seq: int
    turns: int
    size: int
    last_finished_at: float
    urgent_seq: int
    asked_seq: int


@dataclass(frozen=True, slots=True)
class WindowPlace:
    """A window and where it stands in the order of opening."""

    window: QueuedWindow
    first_seq: int


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """What choices need of a queue, summed up once per change of it: looking for work never reads turns again."""

    queue: UserQueue
    sessions: tuple[ReadySession, ...]
    windows: tuple[WindowPlace, ...]


def summary_of(queue: UserQueue) -> QueueSummary:
    ready: dict[str, list[WaitingTurn]] = {}
    first: dict[str, int] = {}
    for turn in queue.turns:
        if turn.stage == "ready":
            ready.setdefault(turn.session_id, []).append(turn)
        elif turn.stage == "window":
            first.setdefault(turn.window_id, turn.seq)
    sessions = (_summed(queue, session_id, turns) for session_id, turns in ready.items())
    windows = (WindowPlace(window, first[window.id]) for window in queue.windows)
    return QueueSummary(queue, tuple(sessions), tuple(windows))


def _summed(queue: UserQueue, session_id: str, turns: Sequence[WaitingTurn]) -> ReadySession:
    mark = queue.mark(session_id)
    return ReadySession(
        session_id,
        first_seq=turns[0].seq,
        turns=len(turns),
        size=sum(turn.size for turn in turns),
        last_finished_at=max(turn.finished_at for turn in turns),
        urgent_seq=mark.urgent_seq,
        asked_seq=mark.asked_seq,
    )


def find_due(summaries: Iterable[QueueSummary], *, now: float, due: LearnDue) -> DueChoice | None:
    """Urgent turns, else the oldest due window or session, of a user without a live lease."""
    return min((work for summary in summaries if (work := due_of(summary, now=now, due=due))), default=None)


def due_of(summary: QueueSummary, *, now: float, due: LearnDue) -> DueChoice | None:
    """The next work of one user. None while somebody works for the user."""
    if any(place.window.state == "leased" and place.window.due_at > now for place in summary.windows):
        return None
    return min((*_due_windows(summary, now), *_due_sessions(summary, now, due)), default=None)


def _due_windows(summary: QueueSummary, now: float) -> Iterator[DueChoice]:
    """Windows wait for earlier ones of their session, unless they ask something of memory."""
    live = [place for place in summary.windows if place.window.state in LIVE]
    for place in live:
        window = place.window
        if window.due_at > now:
            continue
        if window.is_asked or not any(
            other.window.session_id == window.session_id and other.first_seq < place.first_seq for other in live
        ):
            yield DueChoice(GATHERED, place.first_seq, summary.queue.user_id, window.session_id, window.id)


def _due_sessions(summary: QueueSummary, now: float, due: LearnDue) -> Iterator[DueChoice]:
    """Sessions without a window on its way. For what is asked of memory, one that waits for its time is not."""
    live = [place.window for place in summary.windows if place.window.state in LIVE]
    behind_any = {window.session_id for window in live}
    behind_due = {window.session_id for window in live if window.due_at <= now}
    for session in summary.sessions:
        choice = (session.first_seq, summary.queue.user_id, session.session_id, "")
        is_urgent = session.first_seq <= session.urgent_seq
        if session.session_id not in behind_any:
            if is_urgent:
                yield DueChoice(URGENT, *choice, session.urgent_seq)
            elif _is_gathered(session, now, due):
                yield DueChoice(GATHERED, *choice)
        elif is_urgent and session.first_seq <= session.asked_seq and session.session_id not in behind_due:
            yield DueChoice(ASKED, *choice, session.urgent_seq)


def _is_gathered(session: ReadySession, now: float, due: LearnDue) -> bool:
    return (
        session.turns >= due.turns_at_once
        or due.idle_seconds <= 0
        or session.last_finished_at <= now - due.idle_seconds
        or (due.tokens_at_once is not None and session.size >= due.tokens_at_once * TOKEN_BYTES)
    )


@dataclass(frozen=True, slots=True)
class FreshPlace:
    """A turn that nobody has examined, and the ids of those right before it in its session, oldest first."""

    user_id: str
    turn: WaitingTurn
    earlier: tuple[str, ...]


def unexamined(queues: Iterable[UserQueue], *, limit: int) -> list[FreshPlace]:
    """The oldest of all users, as many as may be read at a time."""
    fresh = (
        (turn.seq, turn, queue)
        for queue in queues
        for turn in queue.turns
        if turn.stage == "ready" and turn.worth is None
    )
    chosen: list[FreshPlace] = []
    room = LOOK_BYTES_MAX
    for _, turn, queue in sorted(fresh, key=lambda one: one[0])[:limit]:
        room -= turn.size
        if chosen and room < 0:
            break
        chosen.append(FreshPlace(queue.user_id, turn, _right_before(queue, turn)))
    return chosen


def _right_before(queue: UserQueue, turn: WaitingTurn) -> tuple[str, ...]:
    before = [one.id for one in queue.ready(turn.session_id) if one.seq < turn.seq and one.size <= EARLIER_BYTES_MAX]
    return tuple(before[-EARLIER_TURNS:])


@dataclass(frozen=True, slots=True)
class SheddableWindow:
    """Turns that would form one window, with their value."""

    user_id: str
    session_id: str
    turn_ids: tuple[str, ...]
    worth: float
    first_finished_at: float


def waiting(queues: Iterable[UserQueue]) -> int:
    """Finished turns that are neither learnt nor given up."""
    count = 0
    for queue in queues:
        given_up = {window.id for window in queue.windows if window.state in GIVEN_UP}
        count += sum(
            turn.stage == "ready" or (turn.stage == "window" and turn.window_id not in given_up) for turn in queue.turns
        )
    return count


def sheddable(queues: Iterable[UserQueue], *, surplus: int, window_turns: int) -> list[SheddableWindow]:
    """The least valuable windows that together hold `surplus` turns; of equal ones the oldest first."""
    windows = (window for queue in queues for window in _sheddable_of(queue, max(1, window_turns)))
    chosen: list[SheddableWindow] = []
    for window in sorted(windows, key=lambda one: (one.worth, one.first_finished_at)):
        if surplus <= 0:
            break
        chosen.append(window)
        surplus -= len(window.turn_ids)
    return chosen


def _sheddable_of(queue: UserQueue, window_turns: int) -> Iterator[SheddableWindow]:
    """The windows as they would be leased, without those with an explicit or an unexamined turn."""
    for session_id in dict.fromkeys(turn.session_id for turn in queue.turns if turn.stage == "ready"):
        ready = queue.ready(session_id)
        for start in range(0, len(ready), window_turns):
            window = ready[start : start + window_turns]
            worths = [turn.worth for turn in window if turn.worth is not None and not turn.is_explicit]
            if len(worths) == len(window):
                ids = tuple(turn.id for turn in window)
                yield SheddableWindow(queue.user_id, session_id, ids, max(worths), window[0].finished_at)


def dead_letters(queues: Iterable[UserQueue], *, limit: int) -> list[DeadLetter]:
    found = [
        (window.buried_at, place.first_seq, queue, window)
        for queue in queues
        if queue.windows
        for place in summary_of(queue).windows
        if (window := place.window).state in GIVEN_UP
    ]
    return [
        DeadLetter(
            window.id,
            queue.user_id,
            window.session_id,
            tuple(turn.id for turn in queue.turns_of(window.id)),
            window.reason,
            buried_at,
            window.attempt + window.outages,
        )
        for buried_at, _, queue, window in sorted(found, key=lambda one: one[:2])[:limit]
    ]


def backlog(queue: UserQueue, session_id: str, *, opened_before: float, now: float) -> Backlog:
    """A window whose retry is due by `now` is pending, not waiting."""
    pending = retrying = failed = 0
    for turn in queue.turns:
        if turn.stage in LEFT or turn.opened_at >= opened_before or session_id not in ("", turn.session_id):
            continue
        window = queue.window(turn.window_id) if turn.window_id else None
        if window is not None and window.state in GIVEN_UP:
            failed += 1
            continue
        pending += 1
        retrying += window is not None and window.state == "waiting" and window.due_at > now
    return Backlog(pending=pending, waiting=retrying, failed=failed)


def depth(queues: Iterable[UserQueue], *, now: float) -> QueueDepth:
    counts = dict.fromkeys(("opened", "ready", "leased", "waiting", "dead", "shed"), 0)
    oldest = math.inf
    for queue in queues:
        states = {window.id: window.state for window in queue.windows}
        for turn in queue.turns:
            counts["opened"] += turn.is_open
            state = states[turn.window_id] if turn.stage == "window" else turn.stage
            if state == "open" or state in LEFT:
                continue
            counts[state] += 1
            if state not in GIVEN_UP:
                oldest = min(oldest, turn.finished_at)
    return QueueDepth(
        opened=counts["opened"],
        due=counts["ready"],
        leased=counts["leased"],
        retrying=counts["waiting"],
        dead=counts["dead"],
        oldest_seconds=max(0.0, now - oldest) if oldest < math.inf else 0.0,
        shed=counts["shed"],
    )
