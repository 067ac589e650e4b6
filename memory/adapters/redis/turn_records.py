"""The record of one turn as the fields of a hash, and back. No decisions about learning.

What lists and pages of the record need of a turn, without its texts, is its head: in two hashes of the user, one for
the beginning and one for the end. A turn and its heads are always written together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.adapters.redis.log_client import Command
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.turn_texts import ANSWER_BYTES_MAX, cut, messages_of, messages_to_bytes, to_bytes, to_text
from memory.model import Scope, Turn, TurnStatus

FIELDS = ("o", "e", "s", "f")  # began, ended, stage, claims of a request to forget


class TurnBeginning(msgspec.Struct, frozen=True):
    """What is known when a turn is opened. Later only messages change, if they are deleted. UTF-8 as `turn_texts`."""

    seq: int
    id: str
    user_id: str
    project_id: str
    session_id: str
    agent_id: str
    said_at: float
    opened_at: float
    messages: bytes
    model: bytes
    trace_id: bytes
    receipt_id: bytes


class TurnEnd(msgspec.Struct, frozen=True):
    """How the reply ended. `finished_at`: when it reached us; None while the turn is open."""

    status: str
    answer: bytes = b""
    answered_at: float | None = None
    receipt_id: bytes = b""
    finished_at: float | None = None


class TurnHead(msgspec.Struct, frozen=True):
    """A turn's beginning without its texts, but with their size in bytes."""

    seq: int
    project_id: str
    session_id: str
    agent_id: str
    said_at: float
    opened_at: float
    trace_id: bytes
    receipt_id: bytes
    size: int


class TurnEndHead(msgspec.Struct, frozen=True):
    """Its end, likewise."""

    answered_at: float | None
    finished_at: float | None
    receipt_id: bytes
    size: int


class TurnRecord(msgspec.Struct, frozen=True):
    """`stage`: where the turn left the queue; "" while it is in it. `claims`: None without a request to forget."""

    beginning: TurnBeginning
    end: TurnEnd
    stage: str
    claims: bytes | None

    @property
    def seq(self) -> int:
        return self.beginning.seq

    @property
    def status(self) -> TurnStatus:
        return TurnStatus(self.end.status)

    def turn(self) -> Turn:
        begun, end = self.beginning, self.end
        return Turn(
            id=begun.id,
            scope=Scope(begun.user_id, begun.project_id, begun.session_id, begun.agent_id),
            at=begun.said_at,
            messages=messages_of(begun.messages),
            status=self.status,
            answer=to_text(end.answer),
            answered_at=end.answered_at,
            model=to_text(begun.model),
            trace_id=to_text(begun.trace_id),
            receipt_id=to_text(end.receipt_id or begun.receipt_id),
        )


def beginning_of(turn: Turn, *, seq: int, opened_at: float) -> TurnBeginning:
    scope = turn.scope
    return TurnBeginning(
        seq,
        turn.id,
        scope.user_id,
        scope.project_id,
        scope.session_id,
        scope.agent_id,
        turn.at,
        opened_at,
        messages_to_bytes(turn.messages),
        to_bytes(turn.model),
        to_bytes(turn.trace_id),
        to_bytes(turn.receipt_id),
    )


def end_of(
    status: TurnStatus, *, answer: str, answered_at: float | None, receipt_id: str = "", finished_at: float | None
) -> TurnEnd:
    stored = cut(to_bytes(answer), ANSWER_BYTES_MAX)
    return TurnEnd(status.value, stored, answered_at, to_bytes(receipt_id), finished_at)


def beginning_stored(keys: UserKeys, begun: TurnBeginning) -> list[Command]:
    head = TurnHead(
        begun.seq,
        begun.project_id,
        begun.session_id,
        begun.agent_id,
        begun.said_at,
        begun.opened_at,
        begun.trace_id,
        begun.receipt_id,
        len(begun.messages),
    )
    return [
        ("HSET", keys.turn(begun.id), "o", _ENCODER.encode(begun)),
        ("HSET", keys.turn_heads, begun.id, _ENCODER.encode(head)),
    ]


def end_stored(keys: UserKeys, turn_id: str, end: TurnEnd) -> list[Command]:
    head = TurnEndHead(end.answered_at, end.finished_at, end.receipt_id, len(end.answer))
    return [
        ("HSET", keys.turn(turn_id), "e", _ENCODER.encode(end)),
        ("HSET", keys.turn_ends, turn_id, _ENCODER.encode(head)),
    ]


def head_of(stored: bytes) -> TurnHead:
    return _HEADS.decode(stored)


def end_head_of(stored: bytes) -> TurnEndHead:
    return _END_HEADS.decode(stored)


def read_command(keys: UserKeys, turn_id: str) -> tuple[str, ...]:
    return ("HMGET", keys.turn(turn_id), *FIELDS)


def record_of(fields: Sequence[bytes | None]) -> TurnRecord | None:
    """The reply to `read_command`; None for a turn that is not recorded."""
    began, ended, stage, claims = fields
    if began is None or ended is None:
        return None
    return TurnRecord(_BEGINNINGS.decode(began), _ENDS.decode(ended), (stage or b"").decode(), claims)


_ENCODER = msgspec.msgpack.Encoder()
_BEGINNINGS = msgspec.msgpack.Decoder(TurnBeginning)
_ENDS = msgspec.msgpack.Decoder(TurnEnd)
_HEADS = msgspec.msgpack.Decoder(TurnHead)
_END_HEADS = msgspec.msgpack.Decoder(TurnEndHead)
