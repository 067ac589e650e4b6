"""Records turns that were missed, from the conversation that a client sends again, on Redis.

In one commit with the new turn.

Which ones, and how they are dated: see SQLite's module of this name.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.adapters import tree_rules
from memory.adapters.redis import recording_values
from memory.adapters.redis.branch_values import PlacedTurn
from memory.adapters.redis.branches import Branches
from memory.adapters.redis.known_exchanges import KnownExchanges
from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.recording_times import read_gaps
from memory.adapters.redis.turn_changes import NewTurn, TurnChanges
from memory.adapters.redis.turn_names import TurnNames
from memory.adapters.tree_rules import BranchPosition
from memory.model import SentExchange, Turn


@dataclass(frozen=True, slots=True)
class TreeParts:
    """What a commit about conversations uses."""

    client: LogClient
    names: TurnNames
    exchanges: KnownExchanges
    branches: Branches
    changes: TurnChanges


@dataclass(frozen=True, slots=True)
class MissedTurns:
    """Fills in before `turn`, which is in its session already. `is_session_given`: history may have been imported."""

    parts: TreeParts
    turn: Turn
    is_session_given: bool
    now: float

    async def run(self, position: BranchPosition[PlacedTurn]) -> PlacedTurn | None:
        """The position after the filled-in turns: the last of them, else the known one."""
        last = position.parent
        sent = [one for one in position.missing if one.said]
        if not sent:
            return last
        unknown = await self._unknown([one for one in sent if one.is_recordable])
        said_from = await self._said_from(position.parent, len(unknown)) if unknown else None
        for exchange in sent:
            imported = await self._imported(exchange)
            if imported is not None:
                last = await self._placed(imported, exchange, last, is_imported=True)
            elif exchange in unknown and said_from is None:
                await self._leave_out(exchange)
            elif exchange in unknown and said_from is not None:
                number = unknown.index(exchange)
                last = await self._filled_in(exchange, last, number=number, count=len(unknown), said_from=said_from)
        return last

    async def _unknown(self, exchanges: list[SentExchange]) -> list[SentExchange]:
        left_out = await self.parts.branches.are_left_out([one.key for one in exchanges])
        known = await self.parts.exchanges.are_known(self.turn.scope.user_id, exchanges)
        return [
            one
            for one, is_left_out, is_known in zip(exchanges, left_out, known, strict=True)
            if not is_left_out and not is_known
        ]

    async def _said_from(self, parent: PlacedTurn | None, count: int) -> float | None:
        """The earliest time of the unknown exchanges; None if they are not to be filled in."""
        client, keys = self.parts.client, self.parts.changes.keys
        if parent is not None and parent.is_seen:
            record = (await self.parts.branches.records([parent.turn_id])).get(parent.turn_id)
            if record is None:
                return None  # deleted: what followed it is not restored
            ended_at = record.end.answered_at
            said_at = record.beginning.said_at if ended_at is None else ended_at
            began_at = recording_values.gap_after(await read_gaps(client), said_at)
            return max(said_at, said_at if began_at is None else began_at)
        if await client.call("EXISTS", keys.no_beginnings):
            return None
        return recording_values.gap_with_room(
            await read_gaps(client),
            since=self.now - tree_rules.RETURN_SECONDS_MAX,
            seconds=tree_rules.seconds_to_begin(count, is_loss=False),
            after_loss=tree_rules.seconds_to_begin(count, is_loss=True),
        )

    async def _imported(self, exchange: SentExchange) -> Turn | None:
        """The latest turn of a given session that says this and has no position: history that was imported before."""
        if not self.is_session_given:
            return None
        scope, branches = self.turn.scope, self.parts.branches
        said = await self.parts.exchanges.turns_saying(scope.user_id, exchange)
        without = [turn_id for turn_id in said if await branches.node(turn_id) is None]
        records = (await branches.records(without)).values()
        found = [one for one in records if one.beginning.session_id == scope.session_id]
        return max(found, key=lambda one: one.seq).turn() if found else None

    async def _leave_out(self, exchange: SentExchange) -> None:
        place = await self.parts.names.place()
        user_id = self.turn.scope.user_id
        self.parts.changes.commands += await self.parts.exchanges.leaving_out(user_id, exchange, place=place)

    async def _filled_in(
        self, exchange: SentExchange, last: PlacedTurn | None, *, number: int, count: int, said_from: float
    ) -> PlacedTurn | None:
        tree_id = last.tree_id if last is not None and last.is_seen else ""
        turn = tree_rules.filled_in(
            self.turn, exchange, tree_id=tree_id, number=number, count=count, said_from=said_from
        )
        await insert(self.parts, turn, now=self.now)
        return await self._placed(turn, exchange, last, is_imported=False)

    async def _placed(
        self, turn: Turn, exchange: SentExchange, last: PlacedTurn | None, *, is_imported: bool
    ) -> PlacedTurn:
        above = last if last is not None and last.is_seen else None
        return await place(self.parts, turn, exchange.key, above, is_seen=above is not None or is_imported)


async def insert(parts: TreeParts, turn: Turn, *, now: float, owner: str = "") -> None:
    """A known id changes nothing, whoever's it is."""
    (seq,) = await parts.names.claim(turn.scope.user_id, [turn.id])
    if seq is None or turn.id in await parts.branches.records([turn.id]):
        return
    user_id = turn.scope.user_id
    words = await parts.exchanges.words_digest(turn)
    parts.changes.insert(NewTurn(turn, seq, now, owner, words=words))
    parts.changes.commands += await parts.exchanges.pruning(user_id, place=seq)
    parts.changes.after += parts.names.keeping(parts.changes.keys.digest, [turn.id])


async def place(
    parts: TreeParts, turn: Turn, key: str, above: PlacedTurn | None, *, is_seen: bool, tree_id: str = ""
) -> PlacedTurn:
    """The turn's position after `above`; a known turn keeps its own. `tree_id`: without `above`; "" for a new tree."""
    known = await parts.branches.node(turn.id)
    if known is not None:
        return known
    node = PlacedTurn(
        position=await parts.names.place(),
        turn_id=turn.id,
        session_id=turn.scope.session_id,
        key=key,
        tree_id=above.tree_id if above is not None else tree_id or turn.id,
        parent_id=above.turn_id if above is not None else "",
        is_seen=is_seen,
    )
    parts.branches.put(node)
    return node
