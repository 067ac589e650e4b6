"""Conversation trees in the turn log's database: a turn, its position, and what it fills in are one transaction.

Turns that were missed are recorded from the conversation that a client sends again. An exchange that this user's record
holds or held, under whatever session, project or agent, or that must not be recorded, is not filled in. What
is filled in follows a turn that we observed; or its whole conversation is unknown, and not long ago there was a time
without recording, long enough for it to have begun then: a restart is not. Otherwise an unknown beginning is likely to
be examples in a prompt, or a conversation from elsewhere: it is left out, for good.

A filled-in turn is dated when it can have been said at the earliest, so that it never replaces, nor forgets, what was
said since.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.adapters.sql import branch_positions, known_exchanges, recording_times
from memory.adapters.sql.branch_positions import BranchNode, BranchPosition, insert_node, is_left_out, position_of
from memory.adapters.sql.database import DatedOnDatabase, reading, reads, writes, writing
from memory.adapters.sql.erased_users import opted_out_at, was_erased_since
from memory.adapters.sql.statements import Connection, statements, user_hash
from memory.adapters.sql.turns_queue import insert_turn
from memory.adapters.sql.turns_rows import turn_of
from memory.errors import BadInput
from memory.model import SentConversation, SentExchange, Turn, TurnStatus

SQL = statements("conversation_trees")

RETURN_SECONDS_MAX = 86_400.0  # after a gap: conversations that begin later with unknown exchanges did not begin in it
GAP_SECONDS_MIN = 5.0  # a shorter one without a lost turn is a restart: hardly anybody begins a conversation in it
EXCHANGE_SECONDS_MIN = 1.0  # between two exchanges of a conversation, whoever types and whatever answers
STEP_SECONDS = 0.001  # keeps filled-in turns in order


def is_known(connection: Connection, user_id: str, exchange: SentExchange) -> bool:
    """Whether it is recorded, was deleted, or must not be recorded."""
    return is_left_out(connection, user_id, exchange.key) or known_exchanges.is_known(connection, user_id, exchange)


@dataclass(frozen=True, slots=True)
class Backfill:
    """Fills in before `turn`, which is in its session already. `is_session_given`: history may have been imported."""

    turn: Turn
    is_session_given: bool
    now: float

    def run(self, connection: Connection, position: BranchPosition) -> BranchNode | None:
        """The position after the filled-in turns: the last of them, else the known one."""
        last, user_id = position.parent, self.turn.scope.user_id
        sent = [one for one in position.missing if one.said]
        if not sent:
            return last
        unknown = [one for one in sent if one.is_recordable and not is_known(connection, user_id, one)]
        said_from = self._said_from(connection, position.parent, len(unknown)) if unknown else None
        for exchange in sent:
            above = last if last is not None and last.is_seen else None
            turn = self._imported(connection, exchange)
            is_seen = above is not None or turn is not None
            if turn is None and exchange in unknown:
                if said_from is None:
                    known_exchanges.leave_out(connection, user_id, exchange)
                    continue
                turn = _filled_in(
                    self.turn,
                    exchange,
                    tree_id="" if above is None else above.tree_id,
                    number=unknown.index(exchange),
                    count=len(unknown),
                    said_from=said_from,
                )
                insert_turn(connection, turn, now=self.now, owner="")
            if turn is not None:
                tree_id = turn.id if above is None else above.tree_id
                last = insert_node(connection, turn, exchange.key, tree_id, above, is_seen=is_seen)
        return last

    def _said_from(self, connection: Connection, parent: BranchNode | None, count: int) -> float | None:
        """The earliest time of the unknown exchanges; None if they are not to be filled in."""
        if parent is not None and parent.is_seen:
            ended_at = SQL.end_of_turn.value(connection, float, turn_id=parent.turn_id)
            if ended_at is None:
                return None  # deleted: what followed it is not restored
            return max(ended_at, recording_times.gap_after(connection, ended_at) or ended_at)
        if SQL.erased_conversations.exists(connection, user_hash=user_hash(self.turn.scope.user_id)):
            return None
        return recording_times.gap_with_room(
            connection,
            since=self.now - RETURN_SECONDS_MAX,
            seconds=max(GAP_SECONDS_MIN, count * EXCHANGE_SECONDS_MIN),
            after_loss=(count - 1) * EXCHANGE_SECONDS_MIN,  # the turn that was lost may have been the first
        )

    def _imported(self, connection: Connection, exchange: SentExchange) -> Turn | None:
        """A turn of a given session that says this and has no position: history that was imported before."""
        if not self.is_session_given:
            return None
        turn_id = known_exchanges.without_position(connection, self.turn.scope, exchange)
        return SQL.turn_by_id.one(connection, turn_of, turn_id=turn_id) if turn_id else None


def _filled_in(
    before: Turn, exchange: SentExchange, *, tree_id: str, number: int, count: int, said_from: float
) -> Turn:
    """The turn of that exchange, the `number`th from 0 of `count` that are filled in before another one.

    Its id derives from its position, so that two processes, or two tabs, fill it in once. `tree_id`: "" at the
    beginning of a conversation.
    """
    seed = "\x1f".join((before.scope.user_id, exchange.key, tree_id))
    at = min(said_from + (number + 1) * STEP_SECONDS, before.at - (count - number) * STEP_SECONDS)
    return replace(
        before,
        id="f-" + hashlib.sha256(seed.encode()).hexdigest()[:32],
        at=at,
        messages=exchange.said,
        status=TurnStatus.FILLED_IN,
        answer=exchange.answer,
        answered_at=at,
        trace_id="",
        receipt_id="",
    )


POSITIONS_MAX = 50_000  # of one user; about 300 bytes each


def leave_out(connection: Connection, user_id: str, exchange: SentExchange) -> None:
    known_exchanges.leave_out(connection, user_id, exchange)
    if not exchange.key or is_left_out(connection, user_id, exchange.key):
        return
    turn_id = "\x1f".join(("x", user_id, exchange.key))  # not the id of a turn
    kept = SQL.insert_left_out(connection, turn_id=turn_id, user_id=user_id, key=exchange.key)
    if kept.fetchone()[0] % known_exchanges.PRUNED_EVERY == 0:
        SQL.delete_beyond_limit(connection, user_id=user_id, positions_max=POSITIONS_MAX)


class SqlConversationTrees(DatedOnDatabase):
    async def unknown(self, turn: Turn, sent: SentConversation) -> int:
        return await self._unknown(turn, sent) if sent.earlier else 0

    @reads
    def known(self, connection: Connection, user_id: str, exchanges: Sequence[SentExchange]) -> list[bool]:
        return [is_known(connection, user_id, exchange) for exchange in exchanges]

    async def open(self, turn: Turn, sent: SentConversation) -> str:
        session_id = await self._opened(turn, sent, fills_in=True)
        assert session_id is not None, "what is missing is filled in, or left out"
        return session_id

    async def open_known(self, turn: Turn, sent: SentConversation) -> str | None:
        return await self._opened(turn, sent, fills_in=False)

    async def _opened(self, turn: Turn, sent: SentConversation, *, fills_in: bool) -> str | None:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}")
        return await self._placed(turn, sent, now=self._clock(), fills_in=fills_in)

    @writes
    def _placed(
        self, connection: Connection, turn: Turn, sent: SentConversation, *, now: float, fills_in: bool
    ) -> str | None:
        user_id = turn.scope.user_id
        known = SQL.session_of_turn(connection, id=turn.id).fetchone()
        if known is not None:
            return str(known[0])
        if opted_out_at(connection, user_id) is not None:
            leave_out(connection, user_id, SentExchange(sent.keys[-1], turn.messages, ""))
            return ""
        if was_erased_since(connection, user_id, turn.at):
            return ""
        position = position_of(connection, turn, sent)
        if position.missing and not fills_in:
            return None
        is_extension = position.parent is None or branch_positions.is_extension(connection, position.parent)
        continued = position.parent or position.replaced
        if not sent.is_session_given and continued is not None and continued.is_seen:
            turn = replace(turn, scope=replace(turn.scope, session_id=continued.session_id))
        last = Backfill(turn, sent.is_session_given, now).run(connection, position)
        above = last if last is not None and last.is_seen else None  # a beginning that was never observed is no parent
        insert_turn(connection, turn, now=now, owner=self._database.owners.name)
        tree_id = above.tree_id if above else position.replaced.tree_id if position.replaced else turn.id
        node = insert_node(connection, turn, sent.keys[-1], tree_id, above, is_seen=True)
        if position.replaced is not None or not is_extension:
            beside = branch_positions.under_way(connection, turn, above.turn_id, sent.keys) if above else []
            branch_positions.make_active(connection, turn, tree_id, now=now, beside=beside)
        if node.position % known_exchanges.PRUNED_EVERY == 0:
            SQL.delete_beyond_limit(connection, user_id=user_id, positions_max=POSITIONS_MAX)
        return turn.scope.session_id

    leave_out = writing(leave_out)
    next_shift = reading(branch_positions.next_shift)
    shift = reading(branch_positions.shift_of)
    settle = writing(branch_positions.settle)
    erase = writing(known_exchanges.erase)
    _unknown = reading(branch_positions.unknown)
