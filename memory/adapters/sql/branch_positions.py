"""Finds where a request continues the user's conversations, and inserts positions. Jobs on a connection.

The newest known prefix wins. Where several turns have the same prefix (regenerated answers, or two conversations that
began alike), the answer that the client sends decides, then whether the turn has no continuation yet, then which is
newest. Exchanges after that prefix are recognised by their words or their answers, since clients rewrite messages that
they send again. Costs one lookup for each exchange that is not known, usually one in all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.adapters.sql.statements import Connection, statements
from memory.adapters.turn_texts import messages_of, to_text
from memory.model import SentConversation, SentExchange, Turn
from memory.model.exchanges import folded, is_distinctive, words_of

SQL = statements("branch_positions")

CANDIDATES_MAX = 50  # turns with the same prefix that are compared: some clients begin thousands of chats alike


@dataclass(frozen=True, slots=True)
class BranchNode:
    """The position of a turn."""

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
    session_id = _session_of(turn, sent)
    if sent.continues:
        return BranchPosition(_node(connection, turn, sent.continues, session_id))
    count = unknown(connection, turn, sent)
    missing = sent.earlier[len(sent.earlier) - count :]
    if count < len(sent.earlier):
        last = sent.earlier[len(sent.earlier) - count - 1]
        nodes = _nodes(connection, turn.scope.user_id, last.key, session_id)
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
    found = SQL.left_out_key(connection, user_id=user_id, key=key).fetchone()
    return found is not None


def _session_of(turn: Turn, sent: SentConversation) -> str:
    """The session to which lookups are limited, "" for any."""
    return turn.scope.session_id if sent.is_session_given else ""


def _nodes(connection: Connection, user_id: str, key: str, session_id: str) -> list[BranchNode]:
    rows = SQL.positions_of_key(
        connection, user_id=user_id, key=key, session_id=session_id, candidates_max=CANDIDATES_MAX
    ).fetchall()
    return [BranchNode(*row) for row in reversed(rows)]


def _node(connection: Connection, turn: Turn, turn_id: str, session_id: str) -> BranchNode | None:
    row = SQL.position_of_turn(
        connection, turn_id=turn_id, user_id=turn.scope.user_id, session_id=session_id
    ).fetchone()
    return None if row is None else BranchNode(*row)


def _continued(connection: Connection, nodes: Sequence[BranchNode], answer: str) -> BranchNode | None:
    if len(nodes) > 1:
        nodes = [node for node in nodes if _is_answered(connection, node, answer)] or nodes
        nodes = [node for node in nodes if not _has_child(connection, node)] or nodes
    return nodes[-1] if nodes else None


def _is_answered(connection: Connection, node: BranchNode, answer: str) -> bool:
    row = SQL.answer_of(connection, turn_id=node.turn_id).fetchone()
    return row is not None and to_text(row[0]).split() == answer.split()


def _has_child(connection: Connection, node: BranchNode) -> bool:
    row = SQL.child_of(connection, turn_id=node.turn_id, tree_id=node.tree_id).fetchone()
    return row is not None


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
) -> int:
    """Returns its position. A known turn keeps its own."""
    SQL.insert_position(
        connection,
        id=turn.id,
        user_id=turn.scope.user_id,
        session_id=turn.scope.session_id,
        key=key,
        tree_id=tree_id,
        parent_id=parent.turn_id if parent is not None else "",
        is_seen=is_seen,
    )
    row = SQL.number_of_position(connection, id=turn.id).fetchone()
    return int(row[0])
