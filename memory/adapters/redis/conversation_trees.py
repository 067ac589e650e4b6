"""Conversation trees on Redis: a turn, its position, what it fills in and what it abandons are one commit."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from msgspec import structs

from memory.adapters.redis import branch_positions, branch_values
from memory.adapters.redis.branch_shifts import BranchShifts
from memory.adapters.redis.branch_values import PlacedTurn
from memory.adapters.redis.branches import Branches
from memory.adapters.redis.filling_in import MissedTurns, TreeParts, insert, place
from memory.adapters.redis.known_exchanges import KnownExchanges
from memory.adapters.redis.ledger_store import read_erasure
from memory.adapters.redis.log_client import Command, LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.owners import RedisOwners
from memory.adapters.redis.queue_store import Planned, QueueIndexes, QueueStore
from memory.adapters.redis.queue_values import UserQueue
from memory.adapters.redis.turn_changes import TurnChanges
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.redis.turn_order import TurnOrder
from memory.adapters.redis.turn_records import head_of
from memory.adapters.redis.user_index import Look, Marked
from memory.adapters.tree_rules import SHIFT_TURNS_MAX, BranchPosition
from memory.errors import BadInput
from memory.model import BranchShift, BranchTurn, SentConversation, SentExchange, Turn, TurnStatus
from memory.ports import Clock


class RedisConversationTrees:
    """`memory.ports.ConversationTrees`. `owners` must be open; `order`: of all that records turns."""

    def __init__(
        self, client: LogClient, store: QueueStore, owners: RedisOwners, order: TurnOrder, *, clock: Clock
    ) -> None:
        self._client = client
        self._store = store
        self._owners = owners
        self._order = order
        self._clock = clock
        self._names = TurnNames(client)
        self._exchanges = KnownExchanges(client)
        self._index = QueueIndexes(client).shifts

    async def unknown(self, turn: Turn, sent: SentConversation) -> int:
        if not sent.earlier:
            return 0
        return await branch_positions.unknown(Branches(self._client, turn.scope.user_id), turn, sent)

    async def known(self, user_id: str, exchanges: Sequence[SentExchange]) -> list[bool]:
        left_out = await Branches(self._client, user_id).are_left_out([one.key for one in exchanges])
        recorded = await self._exchanges.are_known(user_id, exchanges)
        return [one or other for one, other in zip(left_out, recorded, strict=True)]

    async def open(self, turn: Turn, sent: SentConversation) -> str:
        if turn.status is not TurnStatus.OPENED:
            raise BadInput(f"only a turn of status opened can be opened; this one is {turn.status.value}")

        async def opening(queue: UserQueue) -> Planned[str]:
            changes = TurnChanges(queue)
            branches = Branches(self._client, turn.scope.user_id)
            parts = TreeParts(self._client, self._names, self._exchanges, branches, changes)
            session_id = await _Opening(parts, turn, sent, self._clock(), self._owners.name).run()
            changes.commands += await branches.commands()
            if changes.commands:
                changes.marks += self._store.inserted(queue.user_id, self._clock())
            return changes.planned(session_id)

        async with self._order.of(turn.id):
            await self._owners.note(turn.scope.user_id)
            return await self._store.plan(turn.scope.user_id, opening)

    async def leave_out(self, user_id: str, exchange: SentExchange) -> None:
        async def leaving_out(_: UserQueue) -> Planned[None]:
            branches = Branches(self._client, user_id)
            at = await self._names.place()
            commands = await self._exchanges.leaving_out(user_id, exchange, place=at)
            (is_known,) = await branches.are_left_out([exchange.key])
            if exchange.key and not is_known:
                commands += await branches.leaving_out(exchange.key, at)
            return Planned(None, commands=commands)

        await self._store.plan(user_id, leaving_out)

    async def next_shift(self, *, without: Collection[str] = ()) -> str | None:
        found = await self._index.search(self._look, limit=len(without) + 1)
        return next((user_id for user_id in found if user_id not in without), None)

    async def shift(self, user_id: str) -> BranchShift:
        nodes = (await Branches(self._client, user_id).all(branch_values.UNSETTLED))[:SHIFT_TURNS_MAX]
        ids = [node.turn_id for node in nodes]
        heads = await self._client.call("HMGET", UserKeys(user_id).turn_heads, *ids) if ids else []
        turns = [
            (BranchTurn(node.turn_id, node.parent_id, head_of(head).said_at), node.is_abandoned)
            for node, head in zip(nodes, heads, strict=True)
            if head is not None
        ]
        return BranchShift(
            tuple(turn for turn, is_abandoned in turns if is_abandoned),
            tuple(turn for turn, is_abandoned in turns if not is_abandoned),
        )

    async def settle(self, user_id: str, shift: BranchShift) -> None:
        shown = {turn.turn_id: True for turn in shift.abandoned} | {turn.turn_id: False for turn in shift.resumed}

        async def settling(_: UserQueue) -> Planned[None]:
            branches = Branches(self._client, user_id)
            nodes = await branches.all(branch_values.UNSETTLED)
            reading: list[Command] = [("HEXISTS", UserKeys(user_id).turn_heads, node.turn_id) for node in nodes]
            for node, is_recorded in zip(nodes, await self._client.calls(reading), strict=True):
                if not is_recorded or shown.get(node.turn_id) == node.is_abandoned:
                    branches.put(_settled(node))
            return Planned(None, commands=await branches.commands())

        await self._store.plan(user_id, settling)

    async def erase(self, user_id: str) -> None:
        async def erasing(_: UserQueue) -> Planned[None]:
            keys = UserKeys(user_id)
            return Planned(None, commands=[("DEL", *keys.of_trees), ("SET", keys.no_beginnings, "1")])

        await self._store.plan(user_id, erasing)

    async def _look(self, page: Sequence[Marked]) -> list[Look[str]]:
        looks: list[Look[str]] = []
        users = await self._client.calls([("GET", UserKeys.of_digest(marked.member).user) for marked in page])
        for marked, user in zip(page, users, strict=True):
            unsettled = await Branches(self._client, user.decode()).newest(branch_values.UNSETTLED, 1) if user else []
            looks.append(Look(user.decode(), marked.place) if unsettled else Look(None, None))
        return looks


@dataclass(frozen=True, slots=True)
class _Opening:
    """Opens one turn at its position."""

    parts: TreeParts
    turn: Turn
    sent: SentConversation
    now: float
    owner: str

    async def run(self) -> str:
        branches, shifts = self.parts.branches, BranchShifts(self.parts.branches, self.parts.changes)
        known = await branches.node(self.turn.id)
        if known is not None:
            return known.session_id
        erased = await read_erasure(self.parts.client, self.turn.scope.user_id)
        if erased is not None and erased.erased_at >= self.turn.at:
            return ""
        position = await branch_positions.position_of(branches, self.turn, self.sent)
        is_extension = position.parent is None or await shifts.is_extension(position.parent)
        turn = replace(self.turn, scope=replace(self.turn.scope, session_id=self._session_id(position)))
        last = await MissedTurns(self.parts, turn, self.sent.is_session_given, self.now).run(position)
        above = last if last is not None and last.is_seen else None  # a beginning that was never observed is no parent
        await insert(self.parts, turn, now=self.now, owner=self.owner)
        await self._place(shifts, turn, position, above, is_extension=is_extension)
        return turn.scope.session_id

    async def _place(
        self,
        shifts: BranchShifts,
        turn: Turn,
        position: BranchPosition[PlacedTurn],
        above: PlacedTurn | None,
        *,
        is_extension: bool,
    ) -> None:
        """At its position, after what it abandons and resumes."""
        tree_id = "" if position.replaced is None else position.replaced.tree_id
        node = await place(self.parts, turn, self.sent.keys[-1], above, is_seen=True, tree_id=tree_id)
        if position.replaced is not None or not is_extension:
            beside = set[str]() if above is None else await shifts.under_way(turn, above, self.sent.keys)
            await shifts.make_active(turn, node.tree_id, now=self.now, beside=beside)

    def _session_id(self, position: BranchPosition[PlacedTurn]) -> str:
        if self.sent.is_session_given:
            return self.turn.scope.session_id
        continued = position.parent or position.replaced
        return continued.session_id if continued is not None and continued.is_seen else self.turn.scope.session_id


def _settled(node: PlacedTurn) -> PlacedTurn:
    reached = node.reached if node.is_abandoned else ""
    return structs.replace(node, is_settled=True, reached=reached)
