"""Text as finders of secrets see it, and the way back: which characters of the original a place in it stands for.

A secret may be written with a no-break space, a hyphen of typography, a character of no width, two spaces, an escape of
JSON or the marks of Markdown, and is the same secret. All that is folded here, once, so that no finder knows of it.
Takes time in proportion to the text; a plain ASCII text is returned as it is.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import merge
from html import unescape
from itertools import chain
from operator import itemgetter
from typing import TypeAlias

BACKSLASHES_MAX = 8  # before one escape: JSON in a string of JSON in a string …
ENTITY_CHARACTERS_MAX = 10  # "&#x200b;"
EMPHASIS_MAX = 3  # asterisks in a row; more of them are a mask
CHARACTERS_KNOWN_MAX = 1 << 15
FEW_KINDS = 48  # of odd characters: replaced one kind after the other; more in one pass, which is slower

_ESCAPED = {"n": "\n", "r": "\n", "t": " ", "/": "/", '"': '"'}
_NOWHERE = "\ue001"  # private use: in place of a character of no width until it is left out
_SENTENCE_MARKS = "！，．？；"  # of full width: they end sentences where no space follows
_STYLES = ("<wide>", "<font>", "<narrow>", "<circle>")  # of a letter that is otherwise the same
_ARABIC_MARKS = {"،": ",", "؛": ";", "؟": "?"}
_EN_DASH, _EM_DASH = "–", "—"

Edit: TypeAlias = tuple[int, int, str]
"""Start, end, and what stands in place of the characters between them."""


@lru_cache(CHARACTERS_KNOWN_MAX)
def _folded(character: str) -> str:
    """What stands in its place: always one character."""
    if character.isascii():
        return " " if character == "\t" else character
    if character in _SENTENCE_MARKS or character in (_EN_DASH, _EM_DASH):
        return character
    if character in _ARABIC_MARKS:
        return _ARABIC_MARKS[character]
    category = unicodedata.category(character)
    if category == "Cf" or unicodedata.name(character, "").startswith("VARIATION SELECTOR"):
        return _NOWHERE
    if category in ("Zl", "Zp") or character == "\x85":
        return "\n"
    if category == "Zs":
        return " "
    if category == "Pd" or character == "−":
        return "-"
    if category in ("Pi", "Pf") or character in "「」『』„‚":
        return "'" if character in "‘’‚‛‹›" else '"'
    if category == "Nd":
        return str(unicodedata.decimal(character))
    plain = unicodedata.decomposition(character).startswith(_STYLES) and unicodedata.normalize("NFKC", character)
    return plain if plain and len(plain) == 1 else character


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Places in a text that replaced another. Of each edit, in order: its start and end after it, and before it."""

    places: tuple[tuple[int, int, int, int], ...]
    _starts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_starts", [place[0] for place in self.places])

    def before(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original that a span of at least one character stands for."""
        return self._of_character(start)[0], self._of_character(end - 1)[1]

    def _of_character(self, position: int) -> tuple[int, int]:
        index = bisect_right(self._starts, position) - 1
        if index < 0:
            return position, position + 1
        _, end, before, before_end = self.places[index]
        if position < end:
            return before, before_end
        return position + before_end - end, position + before_end - end + 1


@dataclass(frozen=True, slots=True)
class Normalised:
    """`text`, and how it came from the original: the rewritings, first to last."""

    text: str
    rewritings: tuple[Rewriting, ...] = ()

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text that this span stands for."""
        for rewriting in reversed(self.rewritings):
            start, end = rewriting.before(start, end)
        return start, end


def normalised(text: str) -> Normalised:
    """`text` is folded: a no-break space is a space, an escape is what it stands for, and so on."""
    if not text.isascii():
        text = _with_dashes(_with_plain_characters(text))
    elif "\t" in text:
        text = text.replace("\t", " ")
    rewritings: list[Rewriting] = []
    for edits in (_marks(text), None):
        text, rewriting = _rewritten(text, _blanks(text) if edits is None else edits)
        if rewriting is not None:
            rewritings.append(rewriting)
    return Normalised(text, tuple(rewritings))


def _with_plain_characters(text: str) -> str:
    table = {ord(character): plain for character in set(text) if (plain := _folded(character)) != character}
    if len(table) > FEW_KINDS:
        return text.translate(table)
    for code, plain_character in table.items():
        text = text.replace(chr(code), plain_character)
    return text


def _with_dashes(text: str) -> str:
    """A dash between two digits or two spaces, or a short one between two letters, is a hyphen; it is none where one
    sentence goes over into another.
    """
    for dash, joins in ((_EN_DASH, str.isalnum), (_EM_DASH, str.isdigit)):
        if dash in text:
            places = [
                at
                for at in _places(text, dash)
                if (text[max(0, at - 1) : at] == text[at + 1 : at + 2] == " ")
                or (joins(text[max(0, at - 1) : at]) and joins(text[at + 1 : at + 2]))
            ]
            text = replaced(text, ((at, at + 1, "-") for at in places))
    return text


def _rewritten(text: str, edits: Iterable[Edit]) -> tuple[str, Rewriting | None]:
    parts: list[str] = []
    places: list[tuple[int, int, int, int]] = []
    position = shift = 0
    for start, end, by in edits:
        if start < position:
            continue
        parts += (text[position:start], by)
        places.append((start + shift, start + shift + len(by), start, end))
        position, shift = end, shift + len(by) - (end - start)
    if not places:
        return text, None
    return "".join([*parts, text[position:]]), Rewriting(tuple(places))


def replaced(text: str, edits: Iterable[Edit]) -> str:
    """`edits`: in order, without overlap."""
    return _rewritten(text, edits)[0]


def _marks(text: str) -> Iterator[Edit]:
    """Escapes of JSON and HTML, emphasis, and what has no width."""
    found: list[Iterable[Edit]] = []
    if _NOWHERE in text:
        found.append((at, at + 1, "") for at in _places(text, _NOWHERE))
    if "\\" in text:
        found.append(_escapes(text))
    if "&" in text and ";" in text:
        found.append(_entities(text))
    found += (_emphasis(text, mark) for mark in ("**", "~~") if mark in text)
    return merge(*found, key=itemgetter(0)) if len(found) > 1 else iter(chain(*found))


def _places(text: str, mark: str) -> Iterator[int]:
    at = text.find(mark)
    while at >= 0:
        yield at
        at = text.find(mark, at + 1)


def _escapes(text: str) -> Iterator[Edit]:
    """Escapes of a character by its code; where the text has quotations, also those that JSON has for white space."""
    is_quoting, end = '"' in text, 0
    for at in _places(text, "\\"):
        if at < end:
            continue
        end = at + 1
        while text[end : end + 1] == "\\" and end - at < BACKSLASHES_MAX:
            end += 1
        letter = text[end : end + 1]
        if letter == "u" and (code := _code(text[end + 1 : end + 5])) is not None:
            folded = _folded(chr(code))
            yield at, end + 5, "" if folded == _NOWHERE else folded
            end += 5
        elif is_quoting and letter in _ESCAPED and letter:
            yield at, end + 1, _ESCAPED[letter]
            end += 1


def _code(digits: str) -> int | None:
    try:
        return int(digits, 16) if len(digits) == 4 and digits.isalnum() else None
    except ValueError:
        return None


def _entities(text: str) -> Iterator[Edit]:
    """Characters as HTML writes them."""
    for at in _places(text, "&"):
        end = text.find(";", at, at + ENTITY_CHARACTERS_MAX) + 1
        character = unescape(text[at:end]) if end else ""
        if len(character) == 1:
            folded = _folded(character)
            yield at, end, "" if folded == _NOWHERE else folded


def _emphasis(text: str, mark: str) -> Iterator[Edit]:
    end = 0
    for at in _places(text, mark):
        if at < end:
            continue
        end = at + len(mark)
        while text[end : end + 1] == mark[0]:
            end += 1
        if end - at <= EMPHASIS_MAX:
            yield at, end, ""


def _blanks(text: str) -> Iterator[Edit]:
    """Several spaces in a row, but for those at the start of a line."""
    end = 0
    for at in _places(text, "  "):
        if at < end:
            continue
        end = at + 2
        while text[end : end + 1] == " ":
            end += 1
        if at and text[at - 1] != "\n":
            yield at, end, " "
