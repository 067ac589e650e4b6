"""The text that all finders use, normalised once, with the same length as the original.

Full-width characters and quotation marks become ASCII; placeholders and private keys become opaque characters that no
pattern matches. The length never changes, so that positions are valid in the original.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from memory.secrets.secret_classes import Span

PLACEHOLDER = re.compile(r"\[(?P<how>redacted|withheld) [a-z ]{3,20}\]")
OPAQUE = "\ue000"  # private use area: no letter, digit or white space

SENTENCE_CHARACTERS = 200  # on either side of a position; a label further away is about something else

_AS_ASCII = {0xFF01 + offset: 0x21 + offset for offset in range(94) if chr(0x21 + offset) not in ",.!?;"}
_AS_ASCII |= {ord(mark): ord('"') for mark in "“”„«»「」"} | {ord(mark): ord("'") for mark in "‘’"}
SENTENCE_END = re.compile(r"[.?](?=\s)|!(?=\s+[^\sa-z])|[。！？；]|\n\s*\n")


@dataclass(frozen=True, slots=True)
class PlainText:
    """`lower` is `text` in lower case, of the same length."""

    text: str
    lower: str

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
    if not text.isascii():
        text = text.translate(_AS_ASCII)
    lower = text.lower()
    if len(lower) != len(text):  # a capital I with a dot becomes two characters
        lower = "".join(small if len(small := character.lower()) == 1 else character for character in text)
    return PlainText(text, lower)


def hidden(plain: PlainText, places: Iterable[Span]) -> PlainText:
    """The same text with these spans made opaque."""
    text, lower = plain.text, plain.lower
    for start, end, _ in places:
        filler = OPAQUE * (end - start)
        text, lower = text[:start] + filler + text[end:], lower[:start] + filler + lower[end:]
    return PlainText(text, lower)


__all__ = ["OPAQUE", "PLACEHOLDER", "SENTENCE_END", "PlainText", "hidden", "plain_text"]
