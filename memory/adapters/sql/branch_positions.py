"""Places requests in the user's conversations, and abandons and resumes turns of a tree. Jobs on a connection.

The newest known prefix wins. Where several turns have the same prefix (regenerated answers, or two conversations that
began alike), the answer that the client sends decides, then whether the turn has no continuation yet, then which is
newest. Exchanges after that prefix are recognised by their words or their answers, since clients rewrite messages that
they send again. Costs one lookup for each exchange that is not known, usually one in all.

An abandoned turn leaves the queue; one that was learnt, or was being learnt, is unsettled until its memories are
withdrawn. Resuming is the reverse. Both happen inside the transaction that opens the turn.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from memory.adapters.sql import turn_effects
from memory.adapters.sql.statements import Connection, listed, statements
from memory.adapters.sql.turns_queue import make_ready, stage_of
from memory.adapters.sql.turns_rows import messages_of, to_text
from memory.adapters.sql.turns_upkeep import take_out
from memory.model import BranchShift, BranchTurn, SentConversation, SentExchange, Turn, TurnStatus
from memory.model.exchanges import folded, is_distinctive, words_of

SQL = statements("branch_positions")

CANDIDATES_MAX = 50  # turns with the same prefix that are compared: some clients begin thousands of chats alike


@dataclass(frozen=True, slots=True)
class BranchNode:
    position: int
    turn_id: str
    session_id: str
    tree_id: str
    parent_id: str
    is_seen: bool
    is_abandoned: bool


@dataclass(frozen=True, slots=True)
class BranchPosition:
    """Where a request continues. `missing`: exchanges after `parent`, or all earlier ones, that are not known.

    `replaced`: the first turn of a conversation, whose messages the request repeats and adds to.
    """

    parent: BranchNode | None
    missing: Sequence[SentExchange] = ()
    replaced: BranchNode | None = None


def position_of(connection: Connection, turn: Turn, sent: SentConversation) -> BranchPosition:
    session_id, user_id = _session_of(turn, sent), turn.scope.user_id
    if sent.continues:
        parent = SQL.position_of_turn.one(
            connection, lambda row: BranchNode(*row), turn_id=sent.continues, user_id=user_id, session_id=session_id
        )
        return BranchPosition(parent)
    count = unknown(connection, turn, sent)
    missing = sent.earlier[len(sent.earlier) - count :]
    if count < len(sent.earlier):
        last = sent.earlier[len(sent.earlier) - count - 1]
        nodes = _nodes(connection, user_id, last.key, session_id)
        return _with_rewritten(connection, _continued(connection, nodes, last.answer), missing)
    replaced = _replaced(connection, turn, sent, session_id) if not sent.earlier else None
    return BranchPosition(None, missing, replaced)


def _with_rewritten(
    connection: Connection, parent: BranchNode | None, missing: Sequence[SentExchange]
) -> BranchPosition:
    """The position after those of the missing exchanges that were recorded in other words, or with another answer."""
    for index, exchange in enumerate(missing):
        following = _recorded_after(connection, parent, exchange) if parent is not None and exchange.said else None
        if following is None:
            return BranchPosition(parent, missing[index:])
        parent = following
    return BranchPosition(parent)


def _recorded_after(connection: Connection, node: BranchNode, exchange: SentExchange) -> BranchNode | None:
    """The newest turn after that one with the words and the answer of the exchange, or with one that is distinctive."""
    rows = SQL.turns_after(
        connection, turn_id=node.turn_id, tree_id=node.tree_id, candidates_max=CANDIDATES_MAX
    ).fetchall()
    words, answer = words_of(exchange.said), folded(exchange.answer)
    said = [row for row in rows if words_of(messages_of(row[0])) == words]
    answered = [row for row in rows if folded(to_text(row[1])) == answer]
    both = [row for row in said if row in answered]
    found = both or (is_distinctive(words) and said) or (is_distinctive(answer) and answered)
    return BranchNode(*found[0][2:]) if found else None


def unknown(connection: Connection, turn: Turn, sent: SentConversation) -> int:
    """How many of the newest earlier exchanges are not known."""
    session_id = _session_of(turn, sent)
    for count, exchange in enumerate(reversed(sent.earlier)):
        if _nodes(connection, turn.scope.user_id, exchange.key, session_id):
            return count
    return len(sent.earlier)


def is_left_out(connection: Connection, user_id: str, key: str) -> bool:
    return SQL.left_out_key.exists(connection, user_id=user_id, key=key)


def _session_of(turn: Turn, sent: SentConversation) -> str:
    """The session to which lookups are limited, "" for any."""
    return turn.scope.session_id if sent.is_session_given else ""


def _nodes(connection: Connection, user_id: str, key: str, session_id: str) -> list[BranchNode]:
    rows = SQL.positions_of_key(
        connection, user_id=user_id, key=key, session_id=session_id, candidates_max=CANDIDATES_MAX
    ).fetchall()
    return [BranchNode(*row) for row in reversed(rows)]


def _continued(connection: Connection, nodes: Sequence[BranchNode], answer: str) -> BranchNode | None:
    if len(nodes) > 1:
        nodes = [node for node in nodes if _is_answered(connection, node, answer)] or nodes
        nodes = [node for node in nodes if not _has_child(connection, node)] or nodes
    return nodes[-1] if nodes else None


def _is_answered(connection: Connection, node: BranchNode, answer: str) -> bool:
    row = SQL.answer_of(connection, turn_id=node.turn_id).fetchone()
    return row is not None and to_text(row[0]).split() == answer.split()


def _has_child(connection: Connection, node: BranchNode) -> bool:
    return SQL.child_of.exists(connection, turn_id=node.turn_id, tree_id=node.tree_id)


def _replaced(connection: Connection, turn: Turn, sent: SentConversation, session_id: str) -> BranchNode | None:
    """A first turn whose answer the client does not show: the request has its messages, and further ones."""
    for key in reversed(sent.keys[:-1]):
        nodes = [n for n in _nodes(connection, turn.scope.user_id, key, session_id) if n.is_seen and not n.parent_id]
        nodes = [node for node in nodes if not _has_child(connection, node)]
        if nodes:
            return ([node for node in nodes if not node.is_abandoned] or nodes)[-1]
    return None


def insert_node(
    connection: Connection, turn: Turn, key: str, tree_id: str, parent: BranchNode | None, *, is_seen: bool
) -> BranchNode:
    """A known turn keeps its own position."""
    session_id, parent_id = turn.scope.session_id, "" if parent is None else parent.turn_id
    SQL.insert_position(
        connection,
        id=turn.id,
        user_id=turn.scope.user_id,
        session_id=session_id,
        key=key,
        tree_id=tree_id,
        parent_id=parent_id,
        is_seen=is_seen,
    )
    (position,) = SQL.number_of_position(connection, id=turn.id).fetchone()
    return BranchNode(position, turn.id, session_id, tree_id, parent_id, is_seen, is_abandoned=False)


SHIFT_TURNS_MAX = 500  # of one kind, settled at a time
OVERLAP_SECONDS_MIN = 0.05  # of two requests at the same time: a client may send the next before we see an answer's end


def is_extension(connection: Connection, parent: BranchNode) -> bool:
    """Whether a new turn after `parent` leaves the rest of its tree as it is."""
    is_left_behind = SQL.newer_on_path.exists(connection, tree_id=parent.tree_id, position=parent.position)
    is_concurrent = SQL.concurrent_in_tree.exists(connection, tree_id=parent.tree_id)
    return not (parent.is_abandoned or is_left_behind or is_concurrent)


def under_way(connection: Connection, turn: Turn, parent_id: str, keys: Sequence[str]) -> list[str]:
    """Turns after the same parent that were being answered when this one came, and that it does not repeat.

    Nobody chose between them yet: two agents, or a client that asks for a title meanwhile.
    """
    return SQL.unanswered_siblings.column(
        connection,
        parent_id=parent_id,
        user_id=turn.scope.user_id,
        id=turn.id,
        at=turn.at + OVERLAP_SECONDS_MIN,
        keys=listed(keys),
    )


def answered(connection: Connection, turn_id: str, user_id: str, *, at: float) -> None:
    """Abandon a turn beside the path if its answer was complete when the one that stands there came, after all."""
    if SQL.later_sibling.exists(connection, turn_id=turn_id, overlap_seconds_min=OVERLAP_SECONDS_MIN, at=at):
        _abandon(connection, user_id, [turn_id])
        SQL.no_longer_concurrent(connection, turn_id=turn_id)


def make_active(connection: Connection, turn: Turn, tree_id: str, *, now: float, beside: Collection[str] = ()) -> None:
    """Make the path to this turn the active one of its tree. The cost depends on the length of both paths.

    `beside`: turns off the path that stay active.
    """
    turn_id, user_id = turn.id, turn.scope.user_id
    path = set(SQL.path_to.column(connection, turn_id=turn_id, user_id=user_id))
    active = SQL.active_in_tree.column(connection, tree_id=tree_id, user_id=user_id)
    left = SQL.abandoned_among.column(connection, path=listed(sorted(path)))
    _abandon(connection, user_id, [one for one in active if one not in path and one not in beside])
    _resume(connection, user_id, left, now=now)
    SQL.none_concurrent(connection, tree_id=tree_id)
    if beside:
        SQL.mark_concurrent(connection, beside=listed(sorted(beside)))


def _abandon(connection: Connection, user_id: str, turn_ids: Sequence[str]) -> None:
    rows = SQL.turns_by_id(connection, turn_ids=listed(turn_ids), user_id=user_id).fetchall()
    take_out(connection, user_id, [row[:5] for row in rows if row[2] in ("open", "ready", "window")], stage="abandoned")
    SQL.abandon_learnt.many(connection, [{"seq": row[0]} for row in rows if row[2] == "learnt"])
    turn_effects.sessions_changed(connection, user_id, {row[1] for row in rows if row[2] == "learnt"})
    SQL.mark_abandoned(connection, is_abandoned=True, turn_ids=listed(turn_ids))
    SQL.unsettle_abandoned.many(
        connection, [{"reached": row[2], "turn_id": row[5]} for row in rows if row[2] in ("window", "learnt")]
    )


def _resume(connection: Connection, user_id: str, turn_ids: Sequence[str], *, now: float) -> None:
    rows = SQL.abandoned_turns(connection, turn_ids=listed(turn_ids), user_id=user_id).fetchall()
    SQL.mark_abandoned(connection, is_abandoned=False, turn_ids=listed(turn_ids))
    turn_effects.sessions_changed(connection, user_id, {session_id for _, session_id, *_ in rows})
    for seq, session_id, status, reached, turn_id in rows:
        # where it was when it was abandoned, or where it would be by now
        stage = "learnt" if reached == "learnt" else stage_of(TurnStatus(status))
        SQL.set_stage(connection, stage=stage, seq=seq)
        if reached:
            SQL.unsettle(connection, turn_id=turn_id)
        if stage == "ready":
            make_ready(connection, seq, user_id, session_id, now)


def next_shift(connection: Connection, *, without: Collection[str] = ()) -> str | None:
    return SQL.unsettled_user.value(connection, str, without=listed(sorted(without)))


def shift_of(connection: Connection, user_id: str) -> BranchShift:
    rows = SQL.unsettled_turns(connection, user_id=user_id, shift_turns_max=SHIFT_TURNS_MAX).fetchall()
    abandoned = tuple(BranchTurn(*row[:3]) for row in rows if row[3])
    return BranchShift(abandoned, tuple(BranchTurn(*row[:3]) for row in rows if not row[3]))


def settle(connection: Connection, user_id: str, shift: BranchShift) -> None:
    for turns, is_abandoned in ((shift.abandoned, True), (shift.resumed, False)):
        SQL.settle_turns(
            connection, user_id=user_id, is_abandoned=is_abandoned, turn_ids=listed(turn.turn_id for turn in turns)
        )
    SQL.settle_deleted(connection, user_id=user_id)
