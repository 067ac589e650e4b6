"""Messages that are no part of a turn's own texts, as values: the text by itself, and the head with everything else."""

from __future__ import annotations

import msgspec

from memory.adapters.turn_texts import to_bytes, to_text
from memory.model import MessageDirection, Party, PartyType, RecordedMessage, Visibility
from memory.model.recorded import ADDED_SEQ, Position


class MessageHead(msgspec.Struct, frozen=True):
    """`place`: in the order of arrival. `size`: of the text in bytes. Names and traces are UTF-8 as `turn_texts`."""

    id: str
    conversation_id: str
    source_type: str
    source: bytes
    target_type: str
    target: bytes
    direction: str
    at: float
    trace_id: bytes
    project_id: str
    turn_id: str
    visibility: str
    seq: int
    ordinal: int
    place: int
    size: int

    @property
    def position(self) -> Position:
        return (self.at, self.seq, self.place if self.seq == ADDED_SEQ else self.ordinal)


def head_of_message(message: RecordedMessage, *, place: int, size: int) -> MessageHead:
    return MessageHead(
        id=message.id,
        conversation_id=message.conversation_id,
        source_type=message.source.type.value,
        source=to_bytes(message.source.name),
        target_type=message.target.type.value,
        target=to_bytes(message.target.name),
        direction=message.direction.value,
        at=message.at,
        trace_id=to_bytes(message.trace_id),
        project_id=message.project_id,
        turn_id=message.turn_id,
        visibility=message.visibility.value,
        seq=message.seq,
        ordinal=message.ordinal,
        place=place,
        size=size,
    )


def message_of(head: MessageHead, text: bytes) -> RecordedMessage:
    return RecordedMessage(
        id=head.id,
        conversation_id=head.conversation_id,
        source=Party(PartyType(head.source_type), to_text(head.source)),
        target=Party(PartyType(head.target_type), to_text(head.target)),
        direction=MessageDirection(head.direction),
        content=to_text(text),
        at=head.at,
        trace_id=to_text(head.trace_id),
        project_id=head.project_id,
        turn_id=head.turn_id,
        visibility=Visibility(head.visibility),
        seq=head.seq,
        ordinal=head.position[2],
    )


def encode_head(head: MessageHead) -> bytes:
    return _ENCODER.encode(head)


def decode_head(stored: bytes) -> MessageHead:
    return _DECODER.decode(stored)


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(MessageHead)
