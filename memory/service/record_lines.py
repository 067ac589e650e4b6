"""The lines of an export that hold the conversation record, checked when they are imported. Pure."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from memory.errors import BadInput
from memory.model import Memory, MemoryStatus, Party, PartyType, RecordedMessage, TurnStatus, is_valid_id
from memory.model.raw_words import raw_row_ids
from memory.model.recorded import ID_OF_TURN
from memory.model.turn_copies import TurnCopy


class ExportedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="turn"):
    copy: TurnCopy


class ExportedMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="message"):
    """Tool traffic, or a message that an application added."""

    message: RecordedMessage


class ExportedRawWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="raw_words"):
    """A row with what the user said in a turn, as said."""

    row: Memory


def checked_turn(copy: TurnCopy) -> TurnCopy:
    """Raises `BadInput`."""
    turn, scope = copy.turn, copy.turn.scope
    ids = (turn.id, *(one for one in (scope.project_id, scope.session_id, scope.agent_id) if one))
    if not all(map(is_valid_id, ids)) or turn.status is TurnStatus.OPENED:
        raise BadInput("a turn has ended, and its ids have 1-256 bytes of UTF-8 without control characters")
    return copy


def checked_message(message: RecordedMessage, user_id: str) -> RecordedMessage:
    """The message as the caller's own. Raises `BadInput`."""
    ids = (message.id, message.conversation_id, *(one for one in (message.project_id, message.turn_id) if one))
    own = f"{ID_OF_TURN}{message.turn_id}:"
    is_named = message.id.startswith(own) if message.turn_id else not message.id.startswith(ID_OF_TURN)
    if not all(map(is_valid_id, ids)) or not is_named:
        raise BadInput(f"the id of a message begins with {ID_OF_TURN} and its turn's id if, and only if, it has one")
    return replace(message, source=_own(message.source, user_id), target=_own(message.target, user_id))


def checked_raw_words(row: Memory, user_id: str, *, of_user: str) -> Memory:
    """The row as the caller's own. Its id follows from user and turn, by which it is found when these are forgotten."""
    turn_id = row.evidence[0].turn_id if row.evidence else ""
    known = raw_row_ids(of_user, turn_id)
    if row.status is not MemoryStatus.RAW or not turn_id or row.id not in known:
        raise BadInput("raw words have the status raw, and an id that follows from their user and turn")
    return replace(row, user_id=user_id, id=raw_row_ids(user_id, turn_id)[known.index(row.id)])


def _own(party: Party, user_id: str) -> Party:
    return Party(PartyType.USER, user_id) if party.type is PartyType.USER else party
