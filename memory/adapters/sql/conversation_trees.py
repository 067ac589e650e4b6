"""Conversation trees in the turn log's database: a turn, its position, and what it fills in are one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from memory.adapters.sql import backfill, branch_positions, branch_shifts, known_exchanges
from memory.adapters.sql.backfill import Backfill
from memory.adapters.sql.branch_positions import BranchNode, BranchPosition, insert_node, is_left_out, position_of
from memory.adapters.sql.database import SqlDatabase
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.jobs import OnDatabase, reading, reads, writes, writing
from memory.adapters.sql.opt_outs import opted_out_at
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_opening import insert_turn
from memory.errors import BadInput
from memory.model import SentConversation, SentExchange, Turn, TurnStatus
from memory.ports import Clock

SQL = statements("conversation_trees")

POSITIONS_MAX = 50_000  # of one user; about 300 bytes each


class SqlConversationTrees(OnDatabase):
    """`memory.ports.ConversationTrees` in an open `SqlDatabase`."""

    def __init__(self, database: SqlDatabase, *, clock: Clock) -> None:
        super().__init__(database)
        self._clock = clock

    async def unknown(self, turn: Turn, sent: SentConversation) -> int:
        return await self._unknown(turn, sent) if sent.earlier else 0

    @reads
    def known(self, connection: Connection, user_id: str, exchanges: Sequence[SentExchange]) -> list[bool]:
        return [backfill.is_known(connection, user_id, exchange) for exchange in exchanges]

    async def open(self, turn: Turn, sent: SentConversation) -> str:
        session_id = await self._opened(turn, sent, fills_in=True)
        assert session_id is not None, "what is missing is filled in, or left out"
        return session_id

    async def open_known(self, turn: Turn, sent: SentConversation) -> str | None:
        return await self._opened(turn, sent, fills_in=False)

    async def _opened(self, turn: Turn, sent: SentConversation, *, fills_in: bool) -> str | None:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}")
        opening = _Opening(turn, sent, self._clock(), self._database.owners.name, fills_in)
        return await self._database.write(opening.run)

    @writes
    def leave_out(self, connection: Connection, user_id: str, exchange: SentExchange) -> None:
        _leave_out(connection, user_id, exchange)

    @writes
    def erase(self, connection: Connection, user_id: str) -> None:
        SQL.delete_positions(connection, user_id=user_id)
        backfill.erase(connection, user_id)

    next_shift = reading(branch_shifts.next_shift)
    shift = reading(branch_shifts.shift_of)
    settle = writing(branch_shifts.settle)
    _unknown = reading(branch_positions.unknown)


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens one turn at its position."""

    turn: Turn
    sent: SentConversation
    now: float
    owner: str
    fills_in: bool

    def run(self, connection: Connection) -> str | None:
        user_id = self.turn.scope.user_id
        known = SQL.session_of_turn(connection, id=self.turn.id).fetchone()
        if known is not None:
            return str(known[0])
        if opted_out_at(connection, user_id) is not None:
            exchange = SentExchange(self.sent.keys[-1], self.turn.messages, "")
            _leave_out(connection, user_id, exchange)
            return ""
        if was_erased_since(connection, user_id, self.turn.at):
            return ""
        position = position_of(connection, self.turn, self.sent)
        if position.missing and not self.fills_in:
            return None
        parent = position.parent
        is_extension = parent is None or branch_shifts.is_extension(connection, parent)
        turn = replace(self.turn, scope=replace(self.turn.scope, session_id=self._session_id(position)))
        last = Backfill(turn, self.sent.is_session_given, self.now).run(connection, position)
        above = last if last is not None and last.is_seen else None  # a beginning that was never observed is no parent
        insert_turn(connection, turn, now=self.now, owner=self.owner)
        at = self._placed(connection, turn, position, above, is_extension=is_extension)
        if at % known_exchanges.PRUNED_EVERY == 0:
            _prune(connection, user_id)
        return turn.scope.session_id

    def _placed(
        self,
        connection: Connection,
        turn: Turn,
        position: BranchPosition,
        above: BranchNode | None,
        *,
        is_extension: bool,
    ) -> int:
        """Its position, after what it abandons and resumes."""
        tree_id = above.tree_id if above else position.replaced.tree_id if position.replaced else turn.id
        at = insert_node(connection, turn, self.sent.keys[-1], tree_id, above, is_seen=True)
        if position.replaced is not None or not is_extension:
            beside = [] if above is None else branch_shifts.under_way(connection, turn, above.turn_id, self.sent.keys)
            branch_shifts.make_active(connection, turn, tree_id, now=self.now, beside=beside)
        return at

    def _session_id(self, position: BranchPosition) -> str:
        if self.sent.is_session_given:
            return self.turn.scope.session_id
        continued = position.parent or position.replaced
        return continued.session_id if continued is not None and continued.is_seen else self.turn.scope.session_id


def _leave_out(connection: Connection, user_id: str, exchange: SentExchange) -> None:
    known_exchanges.leave_out(connection, user_id, exchange)
    if not exchange.key or is_left_out(connection, user_id, exchange.key):
        return
    turn_id = "\x1f".join(("x", user_id, exchange.key))  # not the id of a turn
    kept = SQL.insert_left_out(connection, turn_id=turn_id, user_id=user_id, key=exchange.key)
    if kept.fetchone()[0] % known_exchanges.PRUNED_EVERY == 0:
        _prune(connection, user_id)


def _prune(connection: Connection, user_id: str) -> None:
    """Drop the user's oldest positions past the limit."""
    SQL.delete_beyond_limit(connection, user_id=user_id, positions_max=POSITIONS_MAX)
