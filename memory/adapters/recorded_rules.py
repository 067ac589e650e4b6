"""Rules of the recorded messages that hold on every adapter: cursors, filters, tool traffic, and the limits. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memory.adapters import pages
from memory.adapters.turn_texts import to_bytes, to_text
from memory.errors import BadInput
from memory.model import MessageDirection, MessageFilter, Party, PartyType, RecordedMessage, ToolMessage, Turn
from memory.model.recorded import (
    ID_OF_TURN,
    NAME_CHARACTERS_MAX,
    REMOVED,
    TOOLS_ORDINAL,
    AbandonedBranch,
    Position,
    assistant_of,
)

PAGE_MESSAGES = 500  # read at a time for a change of a whole conversation
CHANGES_PER_WRITE = 100  # turns or messages changed in one step
EXAMINED_BYTES_MAX = 8 << 20  # of text, stored in one page or read for it: less than 100 ms of the reader's thread
UNITS_MAX = 2_000  # parts of turns, and messages, examined for one page
TITLE_CHARACTERS = 80
TITLE_BYTES_MAX = 64 << 10  # examined for a title beyond the first part; a page of sessions has a hundred
TITLE_MESSAGES = 20  # among which the title is looked for
TOOL_MESSAGES_PER_TURN_MAX = 200  # a loop of a hundred calls; further ones are not recorded
BEFORE_ALL: Position = (-1e300, -1, -1)


def admits(where: MessageFilter, message: RecordedMessage) -> bool:
    """As far as a filter concerns a single message: its parties and its words."""
    if where.agent_id and not message.is_seen_by(where.agent_id, with_shared=where.with_shared):
        return False
    text = message.content.casefold() if where.words else ""
    return all(word.casefold() in text for word in where.words)


def is_output(message: RecordedMessage) -> bool:
    return message.direction is MessageDirection.OUTPUT or message.source.type is PartyType.TOOL


def title_of(messages: Sequence[RecordedMessage]) -> str:
    """The beginning of the first message of the user, in one line; of any message if the user said nothing."""
    said = [message for message in messages if message.source.type is PartyType.USER] or messages
    text = " ".join(said[0].content[: TITLE_CHARACTERS * 4].split()) if said else ""
    return text[:TITLE_CHARACTERS]


@dataclass(frozen=True, slots=True)
class BranchRow:
    """A turn of a conversation. `parent_id`: the turn that it continues; "" at the beginning, or if unknown."""

    turn_id: str
    parent_id: str
    is_abandoned: bool
    said_at: float


def abandoned_branches(rows: Sequence[BranchRow]) -> list[AbandonedBranch]:
    """The branches of one conversation in the order in which they began, without titles. `rows`: by time."""
    live = {row.turn_id: place for place, row in enumerate([one for one in rows if not one.is_abandoned], 1)}
    branches: list[tuple[BranchRow, list[str]]] = []
    held_by: dict[str, list[str]] = {}
    for row in rows:
        if not row.is_abandoned:
            continue
        turns = held_by.get(row.parent_id)
        if turns is None:
            turns = []
            branches.append((row, turns))
        turns.append(row.turn_id)
        held_by[row.turn_id] = turns
    return [
        AbandonedBranch(
            first.parent_id, live.get(first.parent_id) if first.parent_id else 0, tuple(turns), first.said_at
        )
        for first, turns in branches
    ]


def tool_traffic(
    turn: Turn, messages: Sequence[ToolMessage], *, seq: int, known: int, at: float
) -> list[RecordedMessage]:
    """What is recorded of it if the turn has so many such messages already."""
    recorded = []
    for ordinal, message in enumerate(messages[: max(0, TOOL_MESSAGES_PER_TURN_MAX - known)], known):
        tool, assistant = Party(PartyType.TOOL, message.name[:NAME_CHARACTERS_MAX]), assistant_of(turn)
        recorded.append(
            RecordedMessage(
                id=_tool_message_id(turn.id, message),
                conversation_id=turn.scope.session_id,
                source=tool if message.is_result else assistant,
                target=assistant if message.is_result else tool,
                direction=MessageDirection.INPUT if message.is_result else MessageDirection.OUTPUT,
                content=message.content,
                at=at,
                trace_id=turn.trace_id,
                project_id=turn.scope.project_id,
                turn_id=turn.id,
                seq=seq,
                ordinal=TOOLS_ORDINAL + ordinal,
            )
        )
    return recorded


def _tool_message_id(turn_id: str, message: ToolMessage) -> str:
    """Equal for the same call or result, so that a repeated request adds nothing."""
    named = message.call_id or f"{message.name}\x1f{message.content}"
    digest = hashlib.sha256(to_bytes(f"{message.is_result}\x1f{named}")).hexdigest()[:24]
    return f"{ID_OF_TURN}{turn_id}:tool-{digest}"


def with_rewritten(stored: bytes, ordinal: int, rewrite: Callable[[str], str]) -> bytes:
    """The messages of a turn (`turn_texts`), one of them rewritten; without a text it loses its role as well."""
    said = json.loads(to_text(stored))
    role, content, is_tool_traffic = said[ordinal]
    content = rewrite(content)
    said[ordinal] = [role if content else REMOVED, content, is_tool_traffic]
    return to_bytes(json.dumps(said, ensure_ascii=False, separators=(",", ":")))


def write_cursor(position: Position) -> str:
    at, seq, ordinal = position
    return pages.write_cursor((at, f"{seq}.{ordinal}"))


def read_cursor(cursor: str) -> Position:
    """The position after which the page starts. Raises `BadInput` for an invalid cursor."""
    read = pages.read_cursor(cursor)
    if read is None:
        return BEFORE_ALL
    numbers = list(_whole_numbers(read[1]))
    if len(numbers) != 2:
        raise BadInput("cursor is invalid: start again without it")
    return (read[0], numbers[0], numbers[1])


def _whole_numbers(text: str) -> Iterator[int]:
    for digits in text.split(".", 2):
        if digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) < 1 << 63:
            yield int(digits)
