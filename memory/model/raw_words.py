"""Raw words: rows with what the user said, as said, for clients that query the collection. They are no memories.

A row has the status `raw`, which no search, note, working set, list or count of memories includes. Its id derives from
the turn, so that forgetting a memory or a turn finds the rows of that turn. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from memory.model.memories import CONTENT_CHARACTERS_MAX, Evidence, Memory, MemoryStatus
from memory.model.turns import Turn

ROWS_PER_TURN_MAX = 9  # a recorded message has at most 65,536 characters, a row 8,000

_IDS = uuid.UUID("5d0e3c52-9a0b-5f0e-8d1f-6a7c3f0e2b94")


def raw_row_ids(user_id: str, turn_id: str) -> list[str]:
    """The ids of all rows that a turn may have, in order."""
    numbers = map(str, range(ROWS_PER_TURN_MAX))
    return [str(uuid.uuid5(_IDS, "\x1f".join((user_id, turn_id, number)))) for number in numbers]


def rows_of(turn: Turn, messages: Sequence[str]) -> list[Memory]:
    """The rows with these messages of the turn, each in pieces that fit into a row."""
    pieces = [piece for message in messages for piece in _pieces(message)]
    ids = raw_row_ids(turn.scope.user_id, turn.id)
    return [_row(turn, row_id, piece) for row_id, piece in zip(ids, pieces, strict=False)]


def _pieces(message: str) -> list[str]:
    """White space alone is none."""
    starts = range(0, len(message), CONTENT_CHARACTERS_MAX)
    return [piece for start in starts if (piece := message[start : start + CONTENT_CHARACTERS_MAX]).strip()]


def _row(turn: Turn, row_id: str, content: str) -> Memory:
    scope = turn.scope
    return Memory(
        id=row_id,
        user_id=scope.user_id,
        content=content,
        created_at=turn.at,
        updated_at=turn.at,
        said_at=turn.at,
        project_id=scope.project_id,
        session_id=scope.session_id,
        agent_id=scope.agent_id,
        memory_type="episodic",
        category="context",
        status=MemoryStatus.RAW,
        importance=0.0,
        evidence=(Evidence(content, turn.id),),
    )
