"""Asks a chat model for a session's summary, and checks its answer. Pure.

An answer is used only if it is short and names nothing that the session does not; otherwise the session's own
statements stand in its place.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memory.chat.plain_lines import on_one_line
from memory.language.restating import adds_nothing
from memory.model import Message, Role, Turn
from memory.sessions.compaction.sentences import shortened
from memory.sessions.summaries.salient_sentences import SummaryText, user_messages

TITLE_CHARACTERS_MAX = 80
TEXT_CHARACTERS_MAX = 480
MESSAGE_CHARACTERS_MAX = 800  # of one message that the model is shown
TRANSCRIPT_CHARACTERS_MAX = 16_000  # about 4,000 tokens; of longer sessions the last turns
NEW_WORDS_MAX = 0.5  # share of content words that the session does not have: "discussed", "wanted", "planned"
ANSWER_TOKENS = 220

PROMPT = (Path(__file__).parent / "summary.txt").read_text(encoding="utf-8")
VERSION = hashlib.sha256(PROMPT.encode()).hexdigest()[:8]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "maxLength": TITLE_CHARACTERS_MAX},
        "summary": {"type": "string", "maxLength": TEXT_CHARACTERS_MAX},
    },
    "required": ["title", "summary"],
    "additionalProperties": False,
}


def asked(turns: Sequence[Turn]) -> tuple[list[Message], list[Turn]]:
    """The messages for the model, and the turns that it is shown: the last ones that fit."""
    shown: list[tuple[Turn, str]] = []
    room = TRANSCRIPT_CHARACTERS_MAX
    for turn in reversed(turns):
        text = _written(turn)
        room -= len(text)
        if shown and room < 0:
            break
        shown.append((turn, text))
    shown.reverse()
    transcript = "\n".join(text for _, text in shown)
    return [Message(Role.SYSTEM, PROMPT), Message(Role.USER, transcript)], [turn for turn, _ in shown]


def checked(answer: str, shown: Sequence[Turn]) -> SummaryText | None:
    """The summary in the model's answer; None if it cannot be used."""
    try:
        read = json.loads(answer)
        title, text = str(read["title"]), str(read["summary"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    title, text = on_one_line(title), on_one_line(text)
    if not (0 < len(title) <= TITLE_CHARACTERS_MAX and 0 < len(text) <= TEXT_CHARACTERS_MAX):
        return None
    sources = [part for turn in shown for part in user_messages(turn) if part.strip()]
    if not adds_nothing(f"{title}. {text}", sources, new_words_max=NEW_WORDS_MAX):
        return None
    return SummaryText(title, text, tuple(turn.id for turn in shown))


def _written(turn: Turn) -> str:
    """What the user said: an answer may repeat what a page or a tool planted, and is no evidence."""
    shown = (shortened(message, MESSAGE_CHARACTERS_MAX) for message in user_messages(turn))
    return "\n".join(f"User: {on_one_line(text)}" for text in shown)
