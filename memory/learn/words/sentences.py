"""A message cut into sentences, each an exact substring of it that knows its place.

Whose words they are is not asked here: what is not to be looked at comes as line ends, which end a sentence, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory.learn.words.lexicon import MONTH_NAMES

_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*(?=\s|$)|(?<=[。！？])[”’」』）)]*|(?<=[.!?])(?=[\u4e00-\u9fff])|\n+")
_NOT_AN_END = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|no|nr|vs|approx|ca|bzw|usw|sra?|dra?|ud|uds|etc|inc|ltd|e\.g|i\.e|z\. ?b|d\. ?h|"
    r"p\. ?ej|a\.m|p\.m|[A-Za-zÀ-ÿ])\.)$",
    re.IGNORECASE,
)
_CLOCK_TIME = re.compile(r"\b[ap]\.m\.$", re.IGNORECASE)
_ORDINAL_DAY = re.compile(r"\b\d{1,2}\.$")
_BULLET = re.compile(r"[ \t]*(?:[-*•·–—]|\d{1,2}[.)、]|\(\d{1,2}\))[ \t]+|[ \t]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """`message[start:end] == text`; `follows_foreign`: a block that is not the user's stands right before it."""

    text: str
    start: int
    end: int
    precedes_foreign: bool = False

    @property
    def is_marked_question(self) -> bool:
        return self.text.rstrip("\"'”’)]） ").endswith(("?", "？"))


def sentences_of(message: str, typed: str) -> list[Sentence]:
    """In order. `typed`: the message, as long as it is, with line ends for what is not to be looked at."""
    return [sentence for sentence in _sentences(message, typed) if any(c.isalnum() for c in sentence.text)]


def _sentences(message: str, typed: str) -> Iterator[Sentence]:
    start = 0
    for end in [*_boundaries(typed), len(typed)]:
        bullet = _BULLET.match(typed, start, end)
        first = bullet.end() if bullet else start
        piece = typed[first:end]
        text = piece.strip()
        if text:
            begin = first + len(piece) - len(piece.lstrip())
            stop = begin + len(text)
            yield Sentence(message[begin:stop], begin, stop, _stands_before_foreign(message, typed, stop))
        start = end


def _stands_before_foreign(message: str, typed: str, stop: int) -> bool:
    rest = message[stop : stop + 3]
    return bool(rest.strip()) and not typed[stop : stop + 3].strip()


def _boundaries(text: str) -> Iterator[int]:
    for match in _ENDS.finditer(text):
        end = match.end()
        if match.group().startswith("\n") or not _is_abbreviated(text, end):
            yield end


def _is_abbreviated(text: str, end: int) -> bool:
    """Whether the full stop before `end` belongs to a word ("Dr.", "14. Juni") rather than ending the sentence."""
    if text[end - 1] != ".":
        return False
    before, after = text[max(0, end - 12) : end], text[end:].lstrip()
    if _CLOCK_TIME.search(before):
        return after[:1].islower()
    if _ORDINAL_DAY.search(before):
        return bool(MONTH_NAMES.match(after)) or after[:1].islower()
    return bool(_NOT_AN_END.search(before)) and not before.endswith("..")
