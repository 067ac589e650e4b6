"""Finds where a request continues a user's conversations, on Redis.

The rules are those of SQLite's module of this name: the newest known prefix wins, among several turns that with the
answer that the client sends, then one without a continuation, then the newest; rewritten messages are recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.adapters import tree_rules
from memory.adapters.redis import branch_values
from memory.adapters.redis.branch_values import PlacedTurn
from memory.adapters.redis.branches import Branches
from memory.adapters.tree_rules import BranchPosition, Continuation
from memory.adapters.turn_texts import messages_of, to_text
from memory.model import SentConversation, SentExchange, Turn


async def unknown(branches: Branches, turn: Turn, sent: SentConversation) -> int:
    """How many of the newest earlier exchanges are not known."""
    session_id = _session_of(turn, sent)
    kinds = [branch_values.of_key(exchange.key, session_id) for exchange in reversed(sent.earlier)]
    return await branches.count_before_known(kinds)


async def position_of(branches: Branches, turn: Turn, sent: SentConversation) -> BranchPosition[PlacedTurn]:
    session_id = _session_of(turn, sent)
    if sent.continues:
        return BranchPosition(await branches.node(sent.continues, session_id))
    count = await unknown(branches, turn, sent)
    missing = sent.earlier[len(sent.earlier) - count :]
    if count < len(sent.earlier):
        last = sent.earlier[len(sent.earlier) - count - 1]
        nodes = await branches.newest(branch_values.of_key(last.key, session_id), tree_rules.CANDIDATES_MAX)
        return await _with_rewritten(branches, await _continued(branches, nodes, last.answer), missing)
    replaced = await _replaced(branches, sent, session_id) if not sent.earlier else None
    return BranchPosition(None, missing, replaced)


async def _with_rewritten(
    branches: Branches, parent: PlacedTurn | None, missing: Sequence[SentExchange]
) -> BranchPosition[PlacedTurn]:
    """The position after those of the missing exchanges that were recorded in other words, or with another answer."""
    for index, exchange in enumerate(missing):
        following = await _recorded_after(branches, parent, exchange) if parent is not None and exchange.said else None
        if following is None:
            return BranchPosition(parent, missing[index:])
        parent = following
    return BranchPosition(parent)


async def _recorded_after(branches: Branches, node: PlacedTurn, exchange: SentExchange) -> PlacedTurn | None:
    after = branch_values.after(node.tree_id, node.turn_id)
    nodes = await branches.newest(after, tree_rules.CANDIDATES_MAX)
    records = await branches.records([one.turn_id for one in nodes])
    recorded = [(one, records[one.turn_id]) for one in reversed(nodes) if one.turn_id in records]
    return tree_rules.recorded_as(
        exchange,
        [Continuation(one, messages_of(was.beginning.messages), to_text(was.end.answer)) for one, was in recorded],
    )


def _session_of(turn: Turn, sent: SentConversation) -> str:
    """The session to which lookups are limited, "" for any."""
    return turn.scope.session_id if sent.is_session_given else ""


async def _continued(branches: Branches, nodes: Sequence[PlacedTurn], answer: str) -> PlacedTurn | None:
    if len(nodes) > 1:
        records = await branches.records([node.turn_id for node in nodes])
        answers = {turn_id: to_text(record.end.answer).split() for turn_id, record in records.items()}
        nodes = [node for node in nodes if answers.get(node.turn_id) == answer.split()] or nodes
        nodes = [node for node in nodes if not await _has_child(branches, node)] or nodes
    return nodes[-1] if nodes else None


async def _has_child(branches: Branches, node: PlacedTurn) -> bool:
    return bool(await branches.newest(branch_values.after(node.tree_id, node.turn_id), 1))


async def _replaced(branches: Branches, sent: SentConversation, session_id: str) -> PlacedTurn | None:
    """A first turn whose answer the client does not show: the request has its messages, and further ones."""
    for key in reversed(sent.keys[:-1]):
        found = await branches.newest(branch_values.of_key(key, session_id), tree_rules.CANDIDATES_MAX)
        nodes = [node for node in found if node.is_seen and not node.parent_id]
        nodes = [node for node in nodes if not await _has_child(branches, node)]
        if nodes:
            return ([node for node in nodes if not node.is_abandoned] or nodes)[-1]
    return None
