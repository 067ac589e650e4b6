"""What one commit changes of a user's turns, gathered step by step. No calls of the server.

Each step names everything that hangs on it: keys of the turn, what happens to its session, and whom others have to look
at again. See `Planned`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from memory.adapters.redis import queue_upkeep, user_queue
from memory.adapters.redis.log_client import Command
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.queue_store import Planned
from memory.adapters.redis.queue_values import QueueChange, UserQueue, WaitingTurn
from memory.adapters.redis.session_events import Changed, SessionEvent, WentOn
from memory.adapters.redis.turn_records import TurnHead, beginning_of, beginning_stored, end_of, end_stored
from memory.adapters.turn_rules import stage_after
from memory.model import Turn, TurnStatus

TURN_ARRIVED, MESSAGE_ARRIVED = "t:", "m:"  # before an id: members of `arrivals`

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class NewTurn:
    """`stage`: "" for that which follows from the turn's status. `owner`: the process by which it was opened."""

    turn: Turn
    seq: int
    at: float
    owner: str = ""
    stage: str = ""


@dataclass(slots=True)
class TurnChanges:
    """Begins with the queue that was read."""

    queue: UserQueue
    stages: dict[str, str] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    sessions: list[SessionEvent] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    marks: list[Command] = field(default_factory=list)
    after: list[Command] = field(default_factory=list)
    is_queue_changed: bool = False

    @property
    def keys(self) -> UserKeys:
        return UserKeys(self.queue.user_id)

    def planned(self, result: Result) -> Planned[Result]:
        change = QueueChange(self.queue, self.stages) if self.is_queue_changed else None
        removed = sorted(self.removed)
        return Planned(result, change, self.commands, self.sessions, removed, marks=self.marks, after=self.after)

    def apply(self, change: QueueChange) -> None:
        self.queue = change.queue
        self.stages |= change.stages
        self.is_queue_changed = True

    def insert(self, new: NewTurn) -> None:
        """A turn that is not recorded, and whose name was claimed for the user."""
        turn, scope, keys = new.turn, new.turn.scope, self.keys
        is_open = turn.status is TurnStatus.OPENED
        stage = new.stage or ("open" if is_open else stage_after(turn.status))
        begun = beginning_of(turn, seq=new.seq, opened_at=new.at)
        finished_at = None if is_open else new.at
        end = end_of(turn.status, answer=turn.answer, answered_at=turn.answered_at, finished_at=finished_at)
        self.commands += [
            *beginning_stored(keys, begun),
            *end_stored(keys, turn.id, end),
            ("ZADD", keys.turns, new.seq, turn.id),
            ("ZADD", keys.session(scope.session_id), new.seq, turn.id),
            ("ZADD", keys.arrivals, repr(new.at), TURN_ARRIVED + turn.id),
        ]
        if not is_open:
            self.sessions.append(WentOn(scope.session_id, new.at))
        if stage not in ("open", "ready"):
            self.commands.append(("HSET", keys.turn(turn.id), "s", stage))
            return
        waiting = WaitingTurn(
            new.seq,
            turn.id,
            scope.session_id,
            scope.project_id,
            opened_at=new.at,
            stage=stage,
            size=len(begun.messages) + len(end.answer),
            is_open=is_open,
            owner=new.owner if is_open else "",
            finished_at=0.0 if is_open else new.at,
        )
        self.apply(user_queue.add(self.queue, waiting))

    def withdraw(self, turn_ids: Collection[str]) -> None:
        """Those that are still to be learnt."""
        change, count = queue_upkeep.withdraw(
            self.queue, project_id="", opened_before=float("inf"), only=turn_ids, spare=()
        )
        if turn_ids and count:
            self.apply(change)

    def delete(self, turn_id: str, head: TurnHead, tool_messages: Sequence[str], *, taught: bool) -> None:
        """With its tool traffic. `taught`: its words may be in the store."""
        keys = self.keys
        if self.queue.turn(turn_id) is not None:
            self.apply(queue_upkeep.delete(self.queue, [turn_id]))
        self.stages.pop(turn_id, None)
        self.commands += [
            ("DEL", keys.turn(turn_id)),
            ("HDEL", keys.turn_heads, turn_id),
            ("HDEL", keys.turn_ends, turn_id),
            ("ZREM", keys.turns, turn_id),
            ("ZREM", keys.session(head.session_id), turn_id),
            ("ZREM", keys.forget_requests, turn_id),
            ("ZREM", keys.arrivals, TURN_ARRIVED + turn_id),
            ("SREM", keys.in_no_summary, turn_id),
            ("SADD", keys.deleted_names, turn_id),
            ("DEL", keys.tools(turn_id)),
        ]
        self.delete_messages(head.session_id, tool_messages)
        self.sessions.append(Changed(head.session_id))
        if taught:
            self.removed.add(turn_id)

    def delete_messages(self, conversation_id: str, message_ids: Sequence[str]) -> None:
        """Added ones, or tool traffic, of which the turn's own list is left."""
        keys = self.keys
        for message_id in message_ids:
            self.commands += [
                ("HDEL", keys.messages, message_id),
                ("HDEL", keys.message_heads, message_id),
                ("ZREM", keys.message_places, message_id),
                ("ZREM", keys.conversation(conversation_id), message_id),
                ("ZREM", keys.arrivals, MESSAGE_ARRIVED + message_id),
            ]
