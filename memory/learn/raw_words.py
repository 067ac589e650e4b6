"""Makes the rows with what was said in a turn, as said: the user's words that no memory quotes, and the answer. Pure.

None of a turn that asks to forget or to withhold something, nor of what it means, nor of planted or hidden text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.chat.hidden_text import hides_text
from memory.learn.reading.units import own_messages
from memory.model import Change, Memory, Role, Turn
from memory.model.raw_words import ANSWERED, answer_rows_of, passages_of, rows_of
from memory.secrets.plain_text import PLACEHOLDER


def raw_rows(
    turns: Sequence[Turn], *, words_of: Collection[Role], withheld: Collection[str], planted: Collection[str]
) -> list[Memory]:
    """`withheld`: turns of which nothing is kept. `planted`: messages that the gate refused as a whole."""
    rows: list[Memory] = []
    for turn in (one for one in turns if one.id not in withheld):
        own = list(own_messages(turn))
        said = [message.strip() for message in own if message not in planted]
        if Role.USER in words_of:
            rows += rows_of(turn, list(filter(_is_fit, said)))
        if Role.ASSISTANT in words_of and len(said) == len(own):
            rows += answer_rows_of(turn, _shown(turn.answer), question=next(filter(_is_fit, reversed(said)), ""))
    return rows


def without_quoted(rows: Sequence[Memory], changes: Sequence[Change]) -> list[Memory]:
    """Of the user's words those that stand in no memory that is written; and the answers."""
    contents = [change.memory.content for change in changes]
    return [row for row in rows if row.source == ANSWERED or not any(row.content in one for one in contents)]


def _shown(answer: str) -> str:
    """Without the passages that hide text; nothing if the rest hides some together."""
    for hides in (passage for passage in passages_of(answer) if not _is_fit(passage)):
        answer = answer.replace(hides, "")
    return answer if _is_fit(answer.strip()) else ""


def _is_fit(said: str) -> bool:
    return bool(said) and not PLACEHOLDER.fullmatch(said) and not hides_text(said)
