"""Conversation trees in the turn log's database: a turn and its position are one transaction.

A filled-in turn has an id that derives from its position, so that two processes, or two tabs, fill it in once.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, replace
from functools import partial

from memory.adapters.sqlite import branch_shifts
from memory.adapters.sqlite.branch_positions import BranchNode, BranchPosition, is_left_out, position_of, unknown
from memory.adapters.sqlite.database import SqliteDatabase
from memory.adapters.sqlite.turns_opening import insert_turn
from memory.adapters.sqlite.turns_rows import TURN_COLUMNS, messages_to_bytes, turn_of
from memory.errors import BadInput
from memory.model import BranchShift, SentConversation, SentExchange, Turn, TurnStatus
from memory.ports import Clock

POSITIONS_MAX = 50_000  # of one user; about 300 bytes each
PRUNED_EVERY = 256  # positions


class SqliteConversationTrees:
    """`memory.ports.ConversationTrees` in an open `SqliteDatabase`."""

    def __init__(self, database: SqliteDatabase, *, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def unknown(self, turn: Turn, sent: SentConversation) -> int:
        if not sent.earlier:
            return 0
        return await self._database.read(partial(unknown, turn=turn, sent=sent))

    async def open(self, turn: Turn, sent: SentConversation) -> str:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}")
        opening = _Opening(turn, sent, self._clock(), self._database.owners.name)
        return await self._database.write(opening.run)

    async def leave_out(self, user_id: str, key: str) -> None:
        await self._database.write(partial(_leave_out, user_id=user_id, key=key))

    async def next_shift(self) -> str | None:
        return await self._database.read(branch_shifts.next_shift)

    async def shift(self, user_id: str) -> BranchShift:
        return await self._database.read(partial(branch_shifts.shift_of, user_id=user_id))

    async def settle(self, user_id: str, shift: BranchShift) -> None:
        await self._database.write(partial(branch_shifts.settle, user_id=user_id, shift=shift))

    async def erase(self, user_id: str) -> None:
        await self._database.write(partial(_erase, user_id=user_id))


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens one turn at its position."""

    turn: Turn
    sent: SentConversation
    now: float
    owner: str

    def run(self, connection: sqlite3.Connection) -> str:
        known = connection.execute("SELECT session_id FROM turn_branches WHERE turn_id = ?", (self.turn.id,)).fetchone()
        if known is not None:
            return str(known[0])
        position = position_of(connection, self.turn, self.sent)
        parent = position.parent
        session_id = self._session_id(position)
        is_extension = parent is None or branch_shifts.is_extension(connection, parent)
        last = self._fill_in(connection, position, session_id)
        above = last if last is not None and last.is_seen else None  # a beginning that was never observed is no parent
        tree_id = above.tree_id if above else position.replaced.tree_id if position.replaced else self.turn.id
        scope = replace(self.turn.scope, session_id=session_id)
        insert_turn(connection, turn=replace(self.turn, scope=scope), now=self.now, owner=self.owner)
        at = _insert(connection, replace(self.turn, scope=scope), self.sent.keys[-1], tree_id, above, is_seen=True)
        if position.replaced is not None or not is_extension:
            branch_shifts.make_active(connection, scope.user_id, tree_id, self.turn.id, now=self.now)
        if at % PRUNED_EVERY == 0:
            _prune(connection, scope.user_id)
        return session_id

    def _session_id(self, position: BranchPosition) -> str:
        if self.sent.is_session_given:
            return self.turn.scope.session_id
        continued = position.parent or position.replaced
        return continued.session_id if continued is not None and continued.is_seen else self.turn.scope.session_id

    def _fill_in(self, connection: sqlite3.Connection, position: BranchPosition, session_id: str) -> BranchNode | None:
        """The position after the filled-in turns: the last of them, else the known one."""
        last = position.parent
        if last is None and _is_erased(connection, self.turn.scope.user_id):
            return None
        for index, exchange in enumerate(position.missing):
            if not exchange.said or is_left_out(connection, self.turn.scope.user_id, exchange.key):
                continue
            last = self._add(connection, exchange, last, session_id, before=len(position.missing) - index)
        return last

    def _add(
        self,
        connection: sqlite3.Connection,
        exchange: SentExchange,
        last: BranchNode | None,
        session_id: str,
        *,
        before: int,
    ) -> BranchNode:
        """The position of a missing exchange: of a turn that fills it in, or of the imported one."""
        imported = _imported(connection, self.turn, exchange) if self.sent.is_session_given else None
        turn = imported or self._filled_in(exchange, last, session_id, before=before)
        if imported is None:
            insert_turn(connection, turn=turn, now=self.now, owner="")
        above = last if last is not None and last.is_seen else None
        is_seen = above is not None or imported is not None
        tree_id = above.tree_id if above is not None else turn.id
        at = _insert(connection, turn, exchange.key, tree_id, above, is_seen=is_seen)
        return BranchNode(at, turn.id, session_id, tree_id, above.turn_id if above else "", int(is_seen), 0)

    def _filled_in(self, exchange: SentExchange, last: BranchNode | None, session_id: str, *, before: int) -> Turn:
        """Said before the request, in order; when exactly is not known."""
        seed = "\x1f".join((exchange.key, last.tree_id if last is not None and last.is_seen else ""))
        at = self.turn.at - before / 1000
        return Turn(
            id="f-" + hashlib.sha256(seed.encode()).hexdigest()[:32],
            scope=replace(self.turn.scope, session_id=session_id),
            at=at,
            messages=exchange.said,
            status=TurnStatus.FILLED_IN,
            answer=exchange.answer,
            answered_at=at,
            model=self.turn.model,
        )


def _imported(connection: sqlite3.Connection, turn: Turn, exchange: SentExchange) -> Turn | None:
    """A turn of the same session that says this and has no position: history that was imported before."""
    row = connection.execute(
        f"""
        SELECT {TURN_COLUMNS} FROM turns
        WHERE user_id = ? AND session_id = ? AND messages = ?
          AND NOT EXISTS (SELECT 1 FROM turn_branches WHERE turn_id = id)
        ORDER BY seq DESC LIMIT 1
        """,  # noqa: S608  # our own constant
        (turn.scope.user_id, turn.scope.session_id, messages_to_bytes(exchange.said)),
    ).fetchone()
    return None if row is None else turn_of(row)


def _insert(
    connection: sqlite3.Connection, turn: Turn, key: str, tree_id: str, parent: BranchNode | None, *, is_seen: bool
) -> int:
    """Returns its position. A known turn keeps its own."""
    connection.execute(
        """
        INSERT OR IGNORE INTO turn_branches (turn_id, user_id, session_id, key, tree_id, parent_id, is_seen)
        VALUES (?, ?, ?, ?, ?, ?, ?)
        """,
        (
            turn.id,
            turn.scope.user_id,
            turn.scope.session_id,
            key,
            tree_id,
            parent.turn_id if parent is not None else "",
            is_seen,
        ),
    )
    row = connection.execute("SELECT position FROM turn_branches WHERE turn_id = ?", (turn.id,)).fetchone()
    return int(row[0])


def _leave_out(connection: sqlite3.Connection, *, user_id: str, key: str) -> None:
    if is_left_out(connection, user_id, key):
        return
    turn_id = "\x1f".join(("x", user_id, key))  # not the id of a turn
    kept = connection.execute(
        """
        INSERT INTO turn_branches (turn_id, user_id, session_id, key, tree_id, parent_id, is_seen, is_left_out)
        VALUES (?, ?, '', ?, '', '', 1, 1)
        """,
        (turn_id, user_id, key),
    )
    if (kept.lastrowid or 0) % PRUNED_EVERY == 0:
        _prune(connection, user_id)


def _prune(connection: sqlite3.Connection, user_id: str) -> None:
    """Drop the user's oldest positions past the limit."""
    connection.execute(
        "DELETE FROM turn_branches WHERE user_id = ?1 AND is_settled AND position <= ("
        "SELECT position FROM turn_branches WHERE user_id = ?1 ORDER BY position DESC LIMIT 1 OFFSET ?2)",
        (user_id, POSITIONS_MAX),
    )


def _user_hash(user_id: str) -> str:
    return hashlib.sha256(user_id.encode()).hexdigest()


def _is_erased(connection: sqlite3.Connection, user_id: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM erased_conversations WHERE user_hash = ?", (_user_hash(user_id),)
    ).fetchone()
    return found is not None


def _erase(connection: sqlite3.Connection, *, user_id: str) -> None:
    connection.execute("DELETE FROM turn_branches WHERE user_id = ?", (user_id,))
    connection.execute("INSERT OR IGNORE INTO erased_conversations VALUES (?)", (_user_hash(user_id),))
