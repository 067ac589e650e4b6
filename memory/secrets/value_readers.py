"""Parsers for the values after a label, one per kind of value: start and end of the value, if there is one.

The more certain the announcement, the less a value has to look like a secret. A parser never returns a part of a value,
nor white space around it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import IntEnum, auto
from itertools import chain
from typing import ClassVar

from memory.secrets.id_numbers import NUMBER
from memory.secrets.plain_text import OPAQUE, PlainText
from memory.secrets.values import is_expression, is_made, is_made_up, is_masked, is_ordinary, is_random, looks_secret
from memory.secrets.vocabulary import LabelSet, ValueKind, Vocabulary, is_in_word

VALUE_CHARACTERS_MAX = 512
LEAD_CHARACTERS_MAX = 9  # before a value: blanks and a quotation mark
QUOTED_CHARACTERS_MAX = 128
PHRASE_WORDS_MIN = 4
PHRASE_WORDS_MAX = 25
PHRASE_CHARACTERS_MAX = 400
ANSWER_WORDS_MAX = 3
BARE_KEY_CHARACTERS_MIN = 16
CHOSEN_KINDS = (ValueKind.PASSWORD, ValueKind.PASSPHRASE, ValueKind.CODE)  # people make them up, and talk about them
DIGITS_MIN = {ValueKind.CODE: 3, ValueKind.NUMBER: 5}


class Certainty(IntEnum):
    """What stands between a label and its value, the most certain first."""

    SIGN = auto()  # "password: …"
    LINK = auto()  # "password is …"
    CHANGE = auto()  # "changed my password to …"
    BARE = auto()  # "with password …"
    LISTED = auto()  # "…, …": behind another value
    NAMED = auto()  # "password_2 = …": of a longer name
    BEFORE = auto()  # "… is my password"
    LATE = auto()  # "password is old and it is …"


_SURE = (Certainty.SIGN, Certainty.LINK)
_BLANKS = re.compile(r"[\s*\\]{0,8}")
_DIGIT = re.compile(r"\d")
_QUOTATION_MARKS = frozenset("\"'`")
_RUN = re.compile(rf"[^\s{OPAQUE}、-鿿！-？]{{1,{VALUE_CHARACTERS_MAX}}}")
_DIGITS = re.compile(r"[#*]?\d(?:[ -]{0,3}\d){0,23}")
_GOES_ON = re.compile(r"[^\W⺀-鿿]|[%/:@]|[.,+-]\w")
_HAN_AND_DIGITS = re.compile(r"[㐀-鿿]{1,8}\d{2,12}")
_PAIR = re.compile(r"[^\s/|:]{1,64}\s?[/|:]\s?(?!/)")
_END = re.compile(r"[\"'`*)\]}|]*(?:[.,;!?。，；！？<]|\s*$)", re.MULTILINE)
_SENTENCE_MARKS = ".,;:!?)\"'"
_CLOSING = (")", "]", "}")
_TRAILING = ".,;:'\"`*>"


class Values:
    """The values of one text. Each is parsed once, however many labels refer to it."""

    __slots__ = ("_known", "_lower", "_made_of", "_text", "plain", "vocabulary")

    def __init__(self, plain: PlainText, vocabulary: Vocabulary) -> None:
        self.plain, self.vocabulary = plain, vocabulary
        self._text, self._lower = plain.text, plain.lower
        self._known: dict[tuple[int, ValueKind, int, Certainty], tuple[int, int] | None] = {}
        spoken = chain.from_iterable(range(*one.span()) for one in vocabulary.digits_spoken.finditer(plain.lower))
        self._made_of = sorted([*spoken, *_digits_of(plain.text)])

    def read_value(self, position: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        """Start and end of the value after `position`, or None."""
        if certainty not in _SURE and not self._may_be_made(position, words.kind):
            return None
        key = (position, words.kind, words.digits_min, certainty)
        if key not in self._known:
            self._known[key] = self._read_value(position, words, certainty)
        return self._known[key]

    def first_made(self, position: int) -> int:
        """Where the first digit from there on stands, or number in words; else the end of the text."""
        index = bisect_left(self._made_of, position)
        return self._made_of[index] if index < len(self._made_of) else len(self._text)

    def _may_be_made(self, position: int, kind: ValueKind) -> bool:
        """Whether digits are near enough for a value that is none without them: in its first word, if it has one."""
        first, begin = self.first_made(position), position + LEAD_CHARACTERS_MAX
        if first <= begin or kind is ValueKind.PHRASE:
            return True
        if kind not in CHOSEN_KINDS or not _QUOTATION_MARKS.isdisjoint(self._text[position:begin]):
            return first < len(self._text)
        return self._text.find(" ", begin, first) < 0

    def _read_value(self, position: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        start = _BLANKS.match(self._text, position).end()  # type: ignore[union-attr]  # matches "" at least
        first = self._text[start : start + 1]
        if not first or (certainty is Certainty.BARE and not (first.isalnum() or first in "#\"'`")):
            return None
        if certainty is Certainty.LATE and words.kind not in CHOSEN_KINDS:
            return None
        if first in "\"'`":
            quotation = self._quotation(start)
            if quotation:
                is_value = self._is_quoted_value(self._text[slice(*quotation)], words, certainty)
                return quotation if is_value else None
            start += 1
            following = self._text[start : start + 1]
            if not following.strip() or (certainty is Certainty.BARE and not following.isalnum()):
                return None  # an empty quotation, or the end of the one in which the label stands
        value = self._READERS[words.kind](self, start, words, certainty)
        return None if value and self._lower.startswith(self.vocabulary.storage, value[1]) else value

    def _ends_clause(self, end: int) -> bool:
        """Whether nothing that belongs to it follows: only punctuation, a preposition, or "and"."""
        if ends_sentence(self.plain, end):
            return True
        following = self._lower[end : end + 24].split()[:1]
        return bool(following) and following[0] in self.vocabulary.function_words

    def _quotation(self, start: int) -> tuple[int, int] | None:
        """What stands between the quotation mark there and the next."""
        mark = self._text[start]
        end = self._text.find(mark, start + 1, start + 2 + QUOTED_CHARACTERS_MAX)
        if end < 0 or is_in_word(self._text[end + 1 : end + 2]) or "\n" in self._text[start:end]:
            return None
        return start + 1, start + 1 + len(self._text[start + 1 : end].rstrip("\\"))

    def _is_quoted_value(self, value: str, words: LabelSet, certainty: Certainty) -> bool:
        if len(value) < 3 or OPAQUE in value or is_masked(value) or is_expression(value):
            return False
        parts = value.lower().split()
        if words.kind is ValueKind.KEY:
            return len(parts) == 1 and is_random(value) and not is_made_up(value)
        if words.kind in (ValueKind.NUMBER, ValueKind.CODE):
            return sum(c.isdigit() for c in value) >= (words.digits_min or DIGITS_MIN[words.kind])
        if is_ordinary(value, self.vocabulary.units) and not value.isdigit():
            return False
        if words.kind is ValueKind.PASSPHRASE and len(parts) > 2:
            return certainty in _SURE and self.vocabulary.about_secrets.isdisjoint(parts)
        if certainty in _SURE:
            plain_words = self.vocabulary.function_words if len(parts) > 2 else self.vocabulary.prose
            return plain_words.isdisjoint(parts) or (any(c.isdigit() for c in value) and len(parts) > 1)
        return len(parts) == 1 and is_made(value)

    def _run(self, start: int) -> str:
        """The value that starts there: up to white space, without the punctuation of the sentence."""
        match = _RUN.match(self._text, start)
        written = match[0].partition("</")[0] if match else ""
        value = written if written.endswith(("...", "…")) else written.rstrip(_TRAILING)  # cut off, and no secret then
        for opening, closing in ("()", "[]", "{}") if value[-1:] in _CLOSING else ():
            while value.endswith(closing) and value.count(closing) > value.count(opening):
                value = value[:-1].rstrip(_TRAILING)
        return value

    def _digits(self, start: int, digits_min: int) -> int | None:
        """The end of a number of `digits_min` digits or more that is no quantity; may be grouped, listed or spoken."""
        spoken = self.vocabulary.digits_spoken.match(self._lower, start)
        if spoken:
            return spoken.end()
        match = _DIGITS.match(self._text, start)
        if not match or sum(c.isdigit() for c in match[0]) < digits_min:
            return None
        rest = self._lower[match.end() : match.end() + 24]
        if _GOES_ON.match(rest) or self.vocabulary.unit.match(rest):
            return None
        return match.end()

    def _password(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        value = self._run(start)
        end = start + len(value)
        if certainty not in (Certainty.LATE, Certainty.NAMED):
            # A year may precede as well.
            digits_min = 3 if certainty in _SURE else 6 if certainty is Certainty.BEFORE else 4
            number_end = self._digits(start, digits_min)
            if number_end:
                return start, max(number_end, end)
        joined = _HAN_AND_DIGITS.match(self._text, start) if certainty in (*_SURE, Certainty.CHANGE) else None
        if joined and ends_sentence(self.plain, joined.end()):
            return joined.span()
        if certainty not in _SURE and not is_made(value):
            return None
        if not value or is_masked(value) or is_expression(value) or is_ordinary(value, self.vocabulary.units):
            return None
        if certainty not in _SURE:
            return start, end
        is_secret = looks_secret(value, self.vocabulary.function_words)
        phrase = self._phrase(start, words, Certainty.SIGN if is_secret else Certainty.LINK)
        phrase = phrase if phrase and self._ends_clause(phrase[1]) else None
        if is_secret:
            return phrase if phrase and self._text.count(" ", end, phrase[1]) > 1 else (start, end)
        if phrase and (self._text[start].islower() or certainty is Certainty.SIGN):
            return phrase
        is_word = len(value) >= 4 and value.isalpha() and value.lower() not in self.vocabulary.prose
        return (start, end) if certainty is Certainty.SIGN and is_word and ends_sentence(self.plain, end) else None

    def _code(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        value = self._run(start)
        is_loose = certainty in (Certainty.BARE, Certainty.LATE, Certainty.BEFORE, Certainty.NAMED)
        number_end = self._digits(start, words.digits_min or DIGITS_MIN[words.kind] + is_loose)
        if number_end:
            return start, max(number_end, start + len(value)) if not value.isalpha() else number_end
        if not is_made(value) or is_masked(value) or is_expression(value):
            return None
        if is_ordinary(value, self.vocabulary.units):
            return None
        has_digits = sum(c.isdigit() for c in value) >= (3 if is_loose else 1)
        return (start, start + len(value)) if has_digits else None

    def _key(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        value = self._run(start)
        if value.lower() in ("basic", "bearer"):
            return self._key(start + len(value) + 1, words, certainty)
        is_sure = certainty in (*_SURE, Certainty.NAMED)
        if value.isalpha() or is_masked(value) or is_made_up(value) or is_expression(value):
            return None
        if is_ordinary(value, self.vocabulary.units) and not value.isdigit():
            return None
        is_one = is_random(value) if is_sure else is_random(value, BARE_KEY_CHARACTERS_MIN)
        return (start, start + len(value)) if is_one else None

    def _phrase(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        """A sequence of words without function words; with a comma after each or none, with hyphens, or numbered."""
        count, end, all_marks = 0, start, set[str]()
        for begin, word in self._words(start):
            bare = word.rstrip(_SENTENCE_MARKS).lower()
            if bare.isdigit() and bare != word:
                continue  # "2." of a list
            parts = bare.split("-")
            is_of_prose = bare in self.vocabulary.function_words or bare in self.vocabulary.units
            if is_of_prose or not all(map(str.isalnum, parts)):
                break
            count, end, marks = count + len(parts), begin + len(bare), word[len(bare) :]
            all_marks.add(marks)
            if marks and all_marks != {","}:
                break
        words_min = PHRASE_WORDS_MIN - (certainty is Certainty.SIGN) if certainty in _SURE else 2 * PHRASE_WORDS_MIN
        return (start, end) if count >= words_min else None

    def _passphrase(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        """Words up to the end of the sentence, some of which may be function words; or a password."""
        stop = self.plain.sentence_end(start, start + PHRASE_CHARACTERS_MAX)
        line = self._text[start:stop].partition("\n")[0].rstrip(_TRAILING)
        parts = [word.strip(_SENTENCE_MARKS).lower() for word in line.split()]
        telling = [word for word in parts if word not in self.vocabulary.function_words]
        is_talk = not self.vocabulary.about_secrets.isdisjoint(parts)
        words_min = PHRASE_WORDS_MIN - (certainty is Certainty.SIGN)
        if certainty in _SURE and not is_talk and words_min <= len(telling) and len(parts) < 2 * len(telling):
            return start, start + len(line)
        return self._password(start, words, certainty)

    def _words(self, start: int) -> Iterator[tuple[int, str]]:
        """Each word, and where it begins: of one line, unless they are numbered."""
        text = self._text[start : start + PHRASE_CHARACTERS_MAX]
        if not text[:1].isdigit():
            text = text.partition("\n")[0]
        position = 0
        for word in text.split(None, 2 * PHRASE_WORDS_MAX)[: 2 * PHRASE_WORDS_MAX]:
            position = text.index(word, position)
            yield start + position, word
            position += len(word)

    def _answer(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        """Up to three words that end the clause; a capitalised name unless a sign announces them."""
        if certainty not in _SURE:
            return None
        end, position = start, start
        for _ in range(ANSWER_WORDS_MAX):
            word = self._run(position)
            if not word or word.lower() in self.vocabulary.prose:
                break
            end = position + len(word)
            if ends_sentence(self.plain, end):
                break
            position = _BLANKS.match(self._text, end).end()  # type: ignore[union-attr]  # "" at least
        first = self._text[start]
        is_name = first.isupper() or first.isdigit() or not first.isascii()
        is_one = end > start and self._ends_clause(end) and (is_name or certainty is Certainty.SIGN)
        return (start, end) if is_one else None

    def _pair(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        """The second value of "anna / hunter2"."""
        match = _PAIR.match(self._text, start)
        if not match or certainty not in _SURE or match[0][:1].isdigit():
            return None
        is_tight = not match[0][-1].isspace() and not match[0][-2].isspace()
        behind = Certainty.SIGN if is_tight and certainty is Certainty.SIGN else Certainty.LINK
        return self._password(match.end(), words, behind)

    def _number(self, start: int, words: LabelSet, certainty: Certainty) -> tuple[int, int] | None:
        match = NUMBER.match(self._text, start)
        if not match or certainty in (Certainty.LATE, Certainty.BEFORE):
            return None
        if sum(c.isdigit() for c in match[0]) < (words.digits_min or DIGITS_MIN[words.kind]):
            return None
        if self.vocabulary.unit.match(self._lower, match.end()):
            return None
        is_number = len(match[0]) > 10 or match[0].isdigit() or not is_ordinary(match[0], frozenset())
        return match.span() if is_number else None

    _READERS: ClassVar = {
        ValueKind.PASSWORD: _password,
        ValueKind.CODE: _code,
        ValueKind.PASSPHRASE: _passphrase,
        ValueKind.PHRASE: _phrase,
        ValueKind.ANSWER: _answer,
        ValueKind.KEY: _key,
        ValueKind.PAIR: _pair,
        ValueKind.NUMBER: _number,
    }


def _digits_of(text: str) -> Iterator[int]:
    """Where they stand, also superscript and circled ones."""
    if not text.isascii() and any(character.isdigit() and not character.isdecimal() for character in set(text)):
        return (place for place, character in enumerate(text) if character.isdigit())
    return (digit.start() for digit in _DIGIT.finditer(text))


def ends_sentence(plain: PlainText, end: int) -> bool:
    """Whether punctuation, the end of the line or the end of the text follows."""
    return bool(_END.match(plain.text, end))
