"""Abandons and resumes turns of a tree on Redis, within the commit that opens or ends a turn.

An abandoned turn leaves the queue; one that was learnt, or was being learnt, is unsettled until its memories are
withdrawn. Resuming is the reverse.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from memory.adapters.redis import branch_values, queue_upkeep
from memory.adapters.redis.branch_values import PlacedTurn
from memory.adapters.redis.branches import Branches
from memory.adapters.redis.queue_values import UNLEARNT, WaitingTurn
from memory.adapters.redis.session_events import Changed
from memory.adapters.redis.turn_changes import TurnChanges
from memory.adapters.redis.turn_records import TurnRecord
from memory.adapters.tree_rules import OVERLAP_SECONDS_MIN, stage_when_resumed
from memory.model import Turn, TurnStatus


class BranchShifts:
    """`changes`: of the same commit."""

    def __init__(self, branches: Branches, changes: TurnChanges) -> None:
        self._branches = branches
        self._changes = changes

    async def is_extension(self, parent: PlacedTurn) -> bool:
        """Whether a new turn after `parent` leaves the rest of its tree as it is."""
        newest = await self._branches.newest(branch_values.active(parent.tree_id), 1)
        beside = await self._branches.newest(branch_values.beside(parent.tree_id), 1)
        is_newest = all(node.position <= parent.position for node in newest)
        return not parent.is_abandoned and is_newest and not beside

    async def under_way(self, turn: Turn, above: PlacedTurn, keys: Collection[str]) -> set[str]:
        """Turns after the same parent that were being answered when this one came, and that it does not repeat.

        Nobody chose between them yet: two agents, or a client that asks for a title meanwhile.
        """
        after = await self._branches.all(branch_values.after(above.tree_id, above.turn_id))
        nodes = [one for one in after if one.turn_id != turn.id and not one.is_abandoned and one.key not in keys]
        records = await self._branches.records([node.turn_id for node in nodes])
        return {turn_id for turn_id, record in records.items() if _is_answering(record, turn.at)}

    async def answered(self, turn_id: str, *, at: float) -> None:
        """Abandon a turn beside the path if its answer was complete when the one that stands there came, after all."""
        own = await self._branches.node(turn_id)
        if own is None or not own.is_concurrent or not own.parent_id:
            return
        others = await self._branches.all(branch_values.after(own.tree_id, own.parent_id))
        later = [one.turn_id for one in others if one.position > own.position and not one.is_abandoned]
        records = await self._branches.records(later)
        if any(one.beginning.said_at + OVERLAP_SECONDS_MIN >= at for one in records.values()):
            await self._abandon([own])
            kept = await self._branches.node(turn_id)
            assert kept is not None  # it was there
            self._branches.put(replace(kept, is_concurrent=False))

    async def make_active(self, turn: Turn, tree_id: str, *, now: float, beside: Collection[str] = ()) -> None:
        """Make the path to this turn the active one of its tree. The cost depends on the length of both paths.

        `beside`: turns off the path that stay active.
        """
        path = await self._path_to(turn.id)
        left = [node for node in path.values() if node.is_abandoned]
        active = await self._branches.all(branch_values.active(tree_id))
        await self._abandon([one for one in active if one.turn_id not in path and one.turn_id not in beside])
        await self._resume(sorted(left, key=lambda node: node.position), now=now)
        for node in await self._branches.all(branch_values.beside(tree_id)):
            self._branches.put(replace(node, is_concurrent=False))
        for turn_id in sorted(beside):
            found = await self._branches.node(turn_id)
            if found is not None:
                self._branches.put(replace(found, is_concurrent=True))

    async def _path_to(self, turn_id: str) -> dict[str, PlacedTurn]:
        path: dict[str, PlacedTurn] = {}
        while turn_id and turn_id not in path:
            node = await self._branches.node(turn_id)
            if node is None:
                break
            path[turn_id] = node
            turn_id = node.parent_id
        return path

    async def _abandon(self, nodes: Sequence[PlacedTurn]) -> None:
        changes, ids = self._changes, [node.turn_id for node in nodes]
        records = await self._branches.records(ids)
        queued = {turn.id: turn.stage for turn in changes.queue.turns if turn.stage in UNLEARNT}
        if queued.keys() & set(ids):
            changes.apply(queue_upkeep.abandon(changes.queue, ids))
        for node in nodes:
            record = records.get(node.turn_id)
            reached = queued.get(node.turn_id) or (record.stage if record is not None else "")
            if record is not None and reached == "learnt":
                changes.restage(node.turn_id, "abandoned")
                changes.sessions.append(Changed(record.beginning.session_id))
            if reached in ("window", "learnt"):
                self._put_unsettled(replace(node, is_abandoned=True, reached=reached))
            else:
                self._branches.put(replace(node, is_abandoned=True))

    async def _resume(self, nodes: Sequence[PlacedTurn], *, now: float) -> None:
        records = await self._branches.records([node.turn_id for node in nodes])
        for node in nodes:
            record, resumed = records.get(node.turn_id), replace(node, is_abandoned=False)
            if record is None or record.stage != "abandoned":
                self._branches.put(resumed)
                continue
            self._resume_turn(record, node.reached, now=now)
            if node.reached:
                self._put_unsettled(resumed)
            else:
                self._branches.put(resumed)

    def _resume_turn(self, record: TurnRecord, reached: str, *, now: float) -> None:
        changes, begun = self._changes, record.beginning
        stage = stage_when_resumed(record.status, reached)
        changes.sessions.append(Changed(begun.session_id))
        if stage not in ("open", "ready"):
            changes.restage(begun.id, stage)
            return
        known = changes.queue.turn(begun.id)  # while its reply goes on
        size = len(begun.messages) + len(record.end.answer)
        waiting = known or WaitingTurn(
            begun.seq, begun.id, begun.session_id, begun.project_id, begun.opened_at, stage, size
        )
        finished_at = 0.0 if stage == "open" else now
        changes.apply(queue_upkeep.resume(changes.queue, replace(waiting, stage=stage, finished_at=finished_at)))

    def _put_unsettled(self, node: PlacedTurn) -> None:
        self._branches.put(replace(node, is_settled=False))
        self._changes.is_shifted = True


def _is_answering(record: TurnRecord, at: float) -> bool:
    """Whether its answer came after that time, or is still to come."""
    if record.status is TurnStatus.OPENED:
        return True
    end = record.end
    ended_at = end.finished_at if end.answered_at is None else end.answered_at
    return ended_at is not None and ended_at > at + OVERLAP_SECONDS_MIN
