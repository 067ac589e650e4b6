"""What is stored of the exchange of a user who has opted out: that it must not be filled in later, and nothing else."""

from __future__ import annotations

from extproc.exchange import LeaveOut, OpenTurn
from extproc.sent_again import RecordingPolicy, leave_out
from memory.model import ChainLink, SentExchange
from memory.ports import ConversationTrees


async def left_out_instead(trees: ConversationTrees, opening: OpenTurn, policy: RecordingPolicy) -> ChainLink | None:
    """None if the turn may be recorded; else the link of an exchange without a turn. Raises `Unavailable`."""
    user_id = opening.turn.scope.user_id
    if not await policy.is_opted_out(user_id):
        return None
    exchange = SentExchange(opening.sent.keys[-1], opening.turn.messages, "")
    await leave_out(trees, LeaveOut(user_id, exchange), policy)
    return ChainLink(opening.turn.scope.session_id, "")
