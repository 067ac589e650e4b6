"""Finds and reads messages of the conversation record, in rows of `turns` and `messages`.

Jobs on a connection. The keys of all candidates are sorted first, without their texts; texts are read for one page
only, up to a limit of bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from memory.adapters import pages
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_rows import to_bytes, to_text, turn_of
from memory.errors import BadInput
from memory.model import MessageDirection, MessageFilter, Party, PartyType, RecordedMessage, Session, Visibility
from memory.model.recorded import (
    ADDED_SEQ,
    ANSWER_ORDINAL,
    TOOLS_ORDINAL,
    AbandonedBranch,
    Position,
    messages_of_turn,
    part_of,
)
from memory.ports import Page

SQL = statements("recorded_rows")

EXAMINED_BYTES_MAX = 8 << 20  # of text, stored in one page or read for it: less than 100 ms of the reader's thread
UNITS_MAX = 2_000  # parts of turns, and messages, examined for one page
TITLE_CHARACTERS = 80
TITLE_BYTES_MAX = 64 << 10  # examined for a title beyond the first part; a page of sessions has a hundred
TITLE_MESSAGES = 20  # among which the title is looked for
BEFORE_ALL: Position = (-1e300, -1, -1)


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A part of a turn, or a row of `messages`, without its text. `last`: the position of its last message."""

    last: Position
    part: str
    row: int
    size: int


def page(
    connection: Connection, where: MessageFilter, *, limit: int, cursor: str = "", bytes_max: int = EXAMINED_BYTES_MAX
) -> Page[RecordedMessage]:
    """At least one part is examined, whatever its size."""
    after = _read_cursor(cursor)
    units = _units(connection, where, after)
    found: list[RecordedMessage] = []
    examined, last = 0, after
    for unit in units:
        if examined and examined + unit.size > bytes_max:
            return Page(tuple(found), _write_cursor(last))
        examined += unit.size
        for message in _messages_in(connection, unit):
            if message.position <= after or not _admits(where, message):
                continue
            if len(found) == limit:
                return Page(tuple(found), _write_cursor(found[-1].position))
            found.append(message)
        last = unit.last
    return Page(tuple(found), _write_cursor(last) if len(units) == UNITS_MAX else "")


def _admits(where: MessageFilter, message: RecordedMessage) -> bool:
    """As far as a filter concerns a single message: its parties and its words."""
    if where.agent_id and not message.is_seen_by(where.agent_id, with_shared=where.with_shared):
        return False
    text = message.content.casefold() if where.words else ""
    return all(word.casefold() in text for word in where.words)


def _units(connection: Connection, where: MessageFilter, after: Position) -> list[StoredPart]:
    rows = SQL.parts_after(
        connection,
        user=where.user_id,
        conversation=where.conversation_id,
        trace=to_bytes(where.trace_id),
        agent="" if where.with_shared else where.agent_id,
        after_at=after[0],
        after_seq=after[1],
        after_ordinal=after[2],
        said_ordinal=TOOLS_ORDINAL - 1,
        answer_ordinal=ANSWER_ORDINAL,
        added_seq=ADDED_SEQ,
        only_live=where.only_live,
        limit=UNITS_MAX,
    ).fetchall()
    return [StoredPart((at, seq, ordinal), part, row, size) for at, seq, ordinal, part, row, size in rows]


def _messages_in(connection: Connection, unit: StoredPart) -> list[RecordedMessage]:
    if unit.part == "message":
        return [message_of(SQL.message_at(connection, row=unit.row).fetchone())]
    parts, is_answer = _parts(SQL.turn_at(connection, row=unit.row).fetchone()), unit.part == "answer"
    return [part for part in parts if (part.ordinal == ANSWER_ORDINAL) == is_answer]


def _parts(row: tuple[Any, ...]) -> list[RecordedMessage]:
    return messages_of_turn(turn_of(row), seq=row[0])


def message_of(row: tuple[Any, ...]) -> RecordedMessage:
    """The message in a row of `MESSAGE_COLUMNS`."""
    message_id, conversation, source_type, source, target_type, target, direction, content, at, trace, *rest = row
    project, turn_id, visibility, seq, ordinal, position = rest
    return RecordedMessage(
        id=message_id,
        conversation_id=conversation,
        source=Party(PartyType(source_type), to_text(source)),
        target=Party(PartyType(target_type), to_text(target)),
        direction=MessageDirection(direction),
        content=to_text(content),
        at=at,
        trace_id=to_text(trace),
        project_id=project,
        turn_id=turn_id,
        visibility=Visibility(visibility),
        seq=seq,
        ordinal=position if seq == ADDED_SEQ else ordinal,
    )


def find(connection: Connection, user_id: str, message_id: str) -> RecordedMessage | None:
    """A part of a turn, or a row of `messages`."""
    part = part_of(message_id)
    if part is None:
        return SQL.message_by_id.one(connection, message_of, user_id=user_id, message_id=message_id)
    turn_id, ordinal = part
    parts = SQL.turn_by_id.one(connection, _parts, user_id=user_id, turn_id=turn_id) or ()
    return next((message for message in parts if message.ordinal == ordinal), None)


def _write_cursor(position: Position) -> str:
    at, seq, ordinal = position
    return pages.write_cursor((at, f"{seq}.{ordinal}"))


def _read_cursor(cursor: str) -> Position:
    """The position after which the page starts. Raises `BadInput` for an invalid cursor."""
    read = pages.read_cursor(cursor)
    if read is None:
        return BEFORE_ALL
    seq, _, ordinal = read[1].partition(".")
    if not all(one.isascii() and one.isdigit() and len(one) < 20 and int(one) < 1 << 63 for one in (seq, ordinal)):
        raise BadInput("cursor is invalid: start again without it")
    return (read[0], int(seq), int(ordinal))


# Sessions


def sessions(connection: Connection, user_id: str, *, limit: int, cursor: str = "") -> Page[Session]:
    """One page, the latest active first. The cost grows with the number of the user's turns, not with their texts."""
    found = _sessions(connection, user_id, None)
    shown, next_cursor = pages.cut([(one.last_at, one.id) for one in found.values()], limit=limit, cursor=cursor)
    titled = (_titled(connection, user_id, found[session_id]) for _, session_id in shown)
    return Page(tuple(titled), next_cursor)


def session(connection: Connection, user_id: str, conversation_id: str) -> Session | None:
    found = _sessions(connection, user_id, conversation_id).get(conversation_id)
    return None if found is None else _titled(connection, user_id, found)


def _sessions(connection: Connection, user_id: str, only: str | None) -> Mapping[str, Session]:
    agents: dict[str, set[str]] = {}
    for session_id, agent_id in SQL.agents_of_turns(connection, user=user_id, session=only):
        agents.setdefault(session_id, set()).add(agent_id)
    for session_id, agent_id in SQL.agents_of_messages(connection, user=user_id, session=only):
        agents.setdefault(session_id, set()).add(to_text(agent_id))
    rows = SQL.sessions_of_user(connection, user=user_id, session=only)
    return {
        session_id: Session(
            id=session_id,
            first_at=first_at,
            last_at=last_at,
            turns=int(turns),
            messages_added=int(added),
            agent_ids=tuple(sorted(agents.get(session_id, set()) - {""})),
            is_answering=bool(opened),
            unlearnt_turns=int(unlearnt),
        )
        for session_id, first_at, last_at, turns, added, opened, unlearnt in rows
    }


def _titled(connection: Connection, user_id: str, session: Session) -> Session:
    first = page(connection, MessageFilter(user_id, session.id), limit=TITLE_MESSAGES, bytes_max=TITLE_BYTES_MAX)
    return replace(session, title=_title_of(first.items))


@dataclass(frozen=True, slots=True)
class _BranchRow:
    """A turn of a conversation. `parent_id`: the turn that it continues; "" at the beginning, or if unknown."""

    turn_id: str
    parent_id: str
    is_abandoned: bool
    said_at: float
    seq: int


def abandoned(connection: Connection, user_id: str, conversation_id: str, *, limit: int) -> list[AbandonedBranch]:
    """Texts are read of the first turn of each branch only."""
    found = SQL.branches_of_session(connection, user_id=user_id, conversation_id=conversation_id)
    rows = [_BranchRow(*row) for row in found]
    places = {row.turn_id: place for place, row in enumerate((row for row in rows if not row.is_abandoned), 1)}
    return [
        AbandonedBranch(
            first.parent_id,
            places.get(first.parent_id) if first.parent_id else 0,
            tuple(turn_ids),
            first.said_at,
            _title_of(_parts(SQL.turn_at(connection, row=first.seq).fetchone())),
        )
        for first, turn_ids in _branches(rows)[-limit:]
    ]


def _branches(rows: Sequence[_BranchRow]) -> list[tuple[_BranchRow, list[str]]]:
    """The first turn of each abandoned branch, and the ids of all, in the order in which they began. `rows`: by
    time.
    """
    branches: list[tuple[_BranchRow, list[str]]] = []
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
    return branches


def _title_of(messages: Sequence[RecordedMessage]) -> str:
    """The beginning of the first message of the user, in one line; of any message if the user said nothing."""
    said = [message for message in messages if message.source.type is PartyType.USER] or messages
    text = " ".join(said[0].content[: TITLE_CHARACTERS * 4].split()) if said else ""
    return text[:TITLE_CHARACTERS]


def turn_ids(connection: Connection, user_id: str, conversation_id: str) -> list[str]:
    return SQL.turns_of_session.column(connection, user_id=user_id, conversation_id=conversation_id)


def receipt_ids(connection: Connection, user_id: str, conversation_id: str, *, limit: int) -> list[tuple[str, str]]:
    rows = SQL.receipts_of_session(connection, user_id=user_id, conversation_id=conversation_id, limit=limit).fetchall()
    return [(turn_id, to_text(receipt_id)) for turn_id, receipt_id in reversed(rows)]


def of_receipt(connection: Connection, user_id: str, receipt_id: str) -> list[RecordedMessage]:
    if not receipt_id:
        return []
    return SQL.turn_of_receipt.one(connection, _parts, user_id=user_id, receipt_id=to_bytes(receipt_id)) or []
