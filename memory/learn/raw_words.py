"""Makes the rows with what the user said in a turn, as said, where no memory of the window quotes it. Pure.

For clients of vLLM Semantic Router, which look for the words of a chat in the collection. A turn that asks to forget or
to withhold something leaves no such row, nor does what it means, nor a message with planted instructions or hidden
text.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.chat.hidden_text import hides_text
from memory.learn.reading.units import own_messages
from memory.model import Change, Memory, Turn
from memory.model.raw_words import rows_of
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


def _rows(turn: Turn, planted: Collection[str]) -> list[Memory]:
    messages = (message.strip() for message in own_messages(turn) if message not in planted)
    return rows_of(turn, [one for one in messages if one and not PLACEHOLDER.fullmatch(one) and not hides_text(one)])
