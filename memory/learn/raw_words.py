"""Makes the rows with what the user said in a turn, as said, where no memory of the window quotes it. Pure.

For clients of vLLM Semantic Router, which look for the words of a chat in the collection. A turn of which
something is withheld leaves no such row, nor does a message that carries planted instructions or hides text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.learn.hidden_text import hides_text
from memory.learn.reading.units import own_messages
from memory.model import CONTENT_CHARACTERS_MAX, Change, ChangeKind, Evidence, Memory, MemoryStatus, Turn
from memory.model.raw_words import raw_row_ids
from memory.secrets.redaction import PLACEHOLDER


def raw_rows(
    turns: Sequence[Turn],
    *,
    withheld: Collection[str],
    planted: Collection[str],
) -> list[Memory]:
    """`withheld`: turns of which nothing is kept. `planted`: messages that the gate refused as a whole."""
    return [row for turn in turns if turn.id not in withheld for row in _rows(turn, planted)]


def without_quoted(rows: Sequence[Memory], changes: Sequence[Change]) -> list[Memory]:
    """The rows whose words stand in no memory that is written."""
    contents = [change.memory.content for change in changes]
    return [row for row in rows if not any(row.content in content for content in contents)]


def creation(row: Memory) -> Change:
    return Change(ChangeKind.CREATE, row)


def _rows(turn: Turn, planted: Collection[str]) -> list[Memory]:
    messages = (message.strip() for message in own_messages(turn) if message not in planted)
    wanted = [one for one in messages if one and not PLACEHOLDER.fullmatch(one) and not hides_text(one)]
    pieces = [piece for one in wanted for piece in _pieces(one)]
    return [
        _row(turn, row_id, piece)
        for row_id, piece in zip(raw_row_ids(turn.scope.user_id, turn.id), pieces, strict=False)
    ]


def _pieces(message: str) -> list[str]:
    """Pieces that fit into a row; white space alone is none."""
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


__all__ = ["creation", "raw_rows", "without_quoted"]
