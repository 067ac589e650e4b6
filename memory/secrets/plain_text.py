"""The text that finders use: normalised, with placeholders and private keys opaque, so that no pattern matches them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memory.secrets.normalised import Normalised, normalised
from memory.secrets.secret_classes import Span

PLACEHOLDER = re.compile(r"\[(redacted|withheld) [a-z ]{3,20}\]")
OPAQUE = "\ue000"  # private use area: no letter, digit or white space

SENTENCE_CHARACTERS = 200  # on either side of a position; a label further away is about something else

SENTENCE_END = re.compile(r"[.?](?=\s)|!(?=\s+[^\sa-z])|[。！？；]|\n\s*\n")


@dataclass(frozen=True, slots=True)
class PlainText:
    """`lower` is `text` in lower case, of the same length. `source`: the way back to the original text."""

    text: str
    lower: str
    source: Normalised

    def sentence(self, start: int, end: int) -> tuple[int, int]:
        """Start and end of the sentence that contains `start` to `end`."""
        begin, limit = max(0, start - SENTENCE_CHARACTERS), min(len(self.text), end + SENTENCE_CHARACTERS)
        for mark in SENTENCE_END.finditer(self.text, begin, start):
            begin = mark.end()
        return begin, self.sentence_end(end, limit)

    def sentence_end(self, start: int, limit: int) -> int:
        """The end of the sentence from `start` on, or `limit`."""
        found = SENTENCE_END.search(self.text, start, limit)
        return found.start() if found else min(limit, len(self.text))


def plain_text(text: str) -> PlainText:
    if "[redacted " in text or "[withheld " in text:
        text = PLACEHOLDER.sub(lambda placeholder: OPAQUE * len(placeholder[0]), text)
    source = normalised(text)
    text, lower = source.text, source.text.lower()
    if len(lower) != len(text):  # a capital I with a dot becomes two characters
        lower = "".join(small if len(small := character.lower()) == 1 else character for character in text)
    return PlainText(text, lower, source)


def hidden(text: str, places: Iterable[Span]) -> str:
    """The same text with these spans made opaque."""
    for start, end, _ in places:
        text = text[:start] + OPAQUE * (end - start) + text[end:]
    return text
