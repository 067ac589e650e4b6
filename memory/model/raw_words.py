"""Raw words: rows with what was said in a turn, as said. They are no memories.

What the user said is for clients that query the collection; an answer of the assistant is found by questions about
what was said, by what it replied to and the beginnings of its lines. A row has the status `raw`, which no search, note,
working set, list or count of memories includes. Its id derives from the turn, so that forgetting a memory or a turn
finds the rows of that turn. Pure.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memory.model.chats import Role
from memory.model.memories import CONTENT_CHARACTERS_MAX, Evidence, Memory, MemoryStatus
from memory.model.turns import Turn

ROWS_PER_TURN_MAX = 9  # of each author: a recorded message has at most 65,536 characters, a row 8,000
ANSWER_IDS_MAX = 16  # the release before stored so many passages of an answer, each in a row
PASSAGE_CHARACTERS_MAX = 400  # some 100 tokens: four of them fit into half a note
# Characters of what an answer is embedded by: of its question, of the beginnings of its lines, and of each at least.
ASKED_CHARACTERS_MAX, HEADS_CHARACTERS_MAX, HEAD_CHARACTERS_MIN = 120, 120, 12
ANSWERED = "answer"  # the `source` of such a row
SENTENCE_ENDS = (". ", "! ", "? ", "。", "！", "？", " ", "")  # where a long line is cut, the first that it has

_IDS = uuid.UUID("5d0e3c52-9a0b-5f0e-8d1f-6a7c3f0e2b94")


def raw_row_ids(user_id: str, turn_id: str) -> list[str]:
    """The ids of all rows that a turn may have, in order: of the user's messages, then of the answer."""
    return [_row_id(user_id, turn_id, number) for number in range(ROWS_PER_TURN_MAX + ANSWER_IDS_MAX)]


def _row_id(user_id: str, turn_id: str, number: int) -> str:
    return str(uuid.uuid5(_IDS, "\x1f".join((user_id, turn_id, str(number)))))


def rows_of(turn: Turn, messages: Sequence[str]) -> list[Memory]:
    """The rows with these messages of the turn, each in pieces that fit into a row."""
    pieces = [piece for message in messages for piece in _pieces(message)][:ROWS_PER_TURN_MAX]
    return [_row(turn, number, piece) for number, piece in enumerate(pieces)]


def answer_rows_of(turn: Turn, answer: str, *, question: str = "") -> list[Memory]:
    """The row with its answer, or its pieces if it is longer. Its evidence is the opening of what it replies to."""
    asked = Evidence(question[:ASKED_CHARACTERS_MAX].strip(), turn.id)
    pieces = enumerate(_pieces(answer.strip())[:ROWS_PER_TURN_MAX], ROWS_PER_TURN_MAX)
    return [replace(_row(turn, number, piece), source=ANSWERED, evidence=(asked,)) for number, piece in pieces]


def embedded_text(memory: Memory) -> str:
    """What a row is embedded by: the content; of an answer the opening of its question and those of its lines.

    A passage that the release before stored quotes the assistant, that is, itself: it is embedded by its content.
    """
    asked = [one.quote for one in memory.evidence if one.role == Role.USER]
    return f"{asked[0]} {_heads(memory.content)}".strip() if memory.source == ANSWERED and asked else memory.content


def _heads(answer: str) -> str:
    lines = [one.strip() for one in answer.splitlines() if any(map(str.isalnum, one))]
    each = max(HEAD_CHARACTERS_MIN, HEADS_CHARACTERS_MAX // max(1, len(lines)))
    return " ".join(line[:each] for line in lines)[:HEADS_CHARACTERS_MAX]


def _pieces(message: str) -> list[str]:
    """White space alone is none."""
    starts = range(0, len(message), CONTENT_CHARACTERS_MAX)
    return [piece for start in starts if (piece := message[start : start + CONTENT_CHARACTERS_MAX]).strip()]


def _row(turn: Turn, number: int, content: str) -> Memory:
    scope = turn.scope
    return Memory(
        id=_row_id(scope.user_id, turn.id, number),
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


def passages_of(answer: str) -> list[str]:
    """An answer in pieces, verbatim and in order: whole lines, as many as fit; a long line is cut between sentences."""
    passages = [""]
    for piece in (piece for line in answer.splitlines(keepends=True) for piece in _short(line)):
        if len(passages[-1]) + len(piece.rstrip()) > PASSAGE_CHARACTERS_MAX:
            passages.append("")
        passages[-1] += piece
    return [passage for one in passages if any(map(str.isalnum, passage := one.strip()))]


def _short(line: str) -> Iterator[str]:
    while len(line.rstrip()) > PASSAGE_CHARACTERS_MAX:
        head = line[:PASSAGE_CHARACTERS_MAX]
        cut = next(at + len(end) for end in SENTENCE_ENDS if (at := head.rfind(end)) > 0)
        yield line[:cut]
        line = line[cut:]
    yield line
