"""The words that announce a secret, by language: loaded from `labels/*.toml` and compiled once.

The files contain only vocabulary, with examples that are its tests. No word of any language stands in this module, and
it does not decide whether something is a secret.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec

from memory.secrets.plain_text import PlainText
from memory.secrets.secret_classes import SecretClass
from memory.typed import from_toml

LANGUAGES = ("en", "de", "es", "zh", "fr", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar")
LABELS_KNOWN_MAX = 4_096  # as they are written
NUMBERED_CHARACTERS = 40  # before a number, in which it may be called the number of something


class ValueKind(StrEnum):
    """The kind of value after a label."""

    PASSWORD = "password"  # noqa: S105 (a kind of value): a word that nobody would write in prose
    CODE = "code"  # mostly digits
    PASSPHRASE = "passphrase"  # noqa: S105 (likewise): a password, or words as of a sentence
    PHRASE = "phrase"  # a sequence of words
    ANSWER = "answer"  # to a security question: a name, a word
    KEY = "key"  # random letters and digits
    PAIR = "pair"  # a user's name and a password
    NUMBER = "number"  # of an account, a card, a person
    CONTEXT = "context"  # no value: the label only classifies numbers near it
    NOTHING = "nothing"  # no value: a term that contains a label's word, and means something else


class LabelSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words of one kind. `is_part`: they may be the end of a longer word, as in "db_password" and "Bankpasswort"."""

    kind: ValueKind
    secret_class: SecretClass = msgspec.field(name="class")
    words: tuple[str, ...]
    is_part: bool = False
    digits_min: int = 0  # 0: the kind's default, 5 for a number, 3 or 4 for a code


class Guards(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Objects that a code opens, and words for the code: "door code", "code for the door"."""

    things: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()


class Language(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file. `redacted` and `kept` are its examples: a text and its redaction, and a text that must not change."""

    has_spaces: bool = True  # between words
    labels: tuple[LabelSet, ...]
    look_alikes: tuple[str, ...] = ()  # terms that contain a label's word and announce nothing
    guards: Guards = Guards()
    number_words: tuple[str, ...] = ()  # may follow a label: "number", "no."
    links: tuple[str, ...] = ()  # between a label and its value: "is"
    change_links: tuple[str, ...] = ()  # after "I changed my password": "to"
    late_links: tuple[str, ...] = ()  # later in the sentence: "it is"
    prepositions: tuple[str, ...] = ()  # start of what may stand between a label and its link: "for the router"
    fillers: tuple[str, ...] = ()  # may stand there alone: "still"
    owners: tuple[str, ...] = ()  # before a label that follows its value: "hunter2 is my password"
    joins: tuple[str, ...] = ()  # between two values: "and"
    units: tuple[str, ...] = ()  # after a number that is a quantity: "characters"
    storage: tuple[str, ...] = ()  # after the name of the place where a secret is kept: "に保存"
    function_words: tuple[str, ...] = ()  # frequent in prose, and never a password
    talk: tuple[str, ...] = ()  # words about passwords that are not passwords: "required"
    digit_words: tuple[str, ...] = ()
    redacted: tuple[tuple[str, str], ...] = ()
    kept: tuple[str, ...] = ()


class LabelMatch(NamedTuple):
    start: int
    end: int
    words: LabelSet


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words of all languages, since people mix them; `labels`: the pattern of Latin labels, then the others."""

    labels: tuple[re.Pattern[str], ...]
    sets: dict[str, LabelSet]  # by the label without spaces and hyphens
    heads: frozenset[str]  # labels only if `guarded` follows: "code" and "for the door"
    guarded: re.Pattern[str]
    example_words: frozenset[str]  # used as passwords in examples: "user:password@host"
    number_word: re.Pattern[str]
    number_words: frozenset[str]
    link: re.Pattern[str]
    preposition: re.Pattern[str]
    owner: re.Pattern[str]
    join: re.Pattern[str]
    fillers: frozenset[str]
    unit: re.Pattern[str]
    units: frozenset[str]
    storage: tuple[str, ...]
    function_words: frozenset[str]
    prose: frozenset[str]  # function words and talk
    about_secrets: frozenset[str]  # talk and units
    digits_spoken: re.Pattern[str]

    def find(self, plain: PlainText) -> list[LabelMatch]:
        """In order, each once, whichever languages contain it. The beginning of a longer word is none: "tokenizer"."""
        found: dict[tuple[int, int], LabelMatch] = {}
        known: dict[tuple[int, int], LabelMatch | None] = {}  # languages share words
        is_latin = plain.lower.isascii() or max(plain.lower) < _NOT_LATIN
        for pattern in self.labels[:1] if is_latin else self.labels:
            position = 0
            while match := pattern.search(plain.lower, position):
                span = match.span()
                if span not in known:
                    known[span] = self._label(plain, *span)
                label = known[span]
                position = label.end if label else span[0] + 1
                if label:
                    found[label.start, label.end] = label
        return list(_outside_of_look_alikes(sorted(found.values(), key=lambda label: (label.start, -label.end))))

    def _label(self, plain: PlainText, start: int, end: int) -> LabelMatch | None:
        word = _squashed(plain.lower[start:end])
        words = self.sets.get(word)
        if word in self.heads:
            guarded = self.guarded.match(plain.lower, end)
            words, end = (_GUARD, guarded.end()) if guarded else (words, end)
        if not words:
            return None
        if words.is_part and word[-1] < _NO_SPACES and plain.text[end : end + 1].islower():
            return None
        if not words.is_part and start and is_in_word(plain.lower[start - 1]):
            return None
        number_word = self.number_word.match(plain.lower, end) if words.kind is not ValueKind.PASSWORD else None
        end = number_word.end() if number_word else end
        is_inside = not words.is_part and is_in_word(plain.lower[end : end + 1])
        return None if is_inside else LabelMatch(start, end, words)


def _outside_of_look_alikes(found: Sequence[LabelMatch]) -> Iterator[LabelMatch]:
    """Another language may know a part of what means nothing as a whole."""
    end = 0
    for label in found:
        if label.start >= end:
            yield label
        if label.words.kind is ValueKind.NOTHING:
            end = label.end


class LabelMatches:
    """The labels of one text, with a test whether a class occurs in a range."""

    __slots__ = ("_look_alikes", "_starts", "_vocabulary", "all")

    def __init__(self, found: Sequence[LabelMatch], vocabulary: Vocabulary) -> None:
        self.all = found
        self._vocabulary = vocabulary
        self._starts: dict[SecretClass, list[int]] = {}
        self._look_alikes = [(one.start, one.end) for one in found if one.words.kind is ValueKind.NOTHING]
        for label in found:
            self._starts.setdefault(label.words.secret_class, []).append(label.start)

    def is_look_alike(self, start: int, end: int) -> bool:
        """Whether the last term that announces nothing before `end` reaches beyond `start`."""
        index = bisect_left(self._look_alikes, (end, end)) - 1
        return index >= 0 and self._look_alikes[index][1] > start

    def is_numbered(self, plain: PlainText, start: int) -> bool:
        """Whether what begins there is the number of something: "order number …", "ticket no. is …"."""
        before = plain.lower[max(0, start - NUMBERED_CHARACTERS) : start].replace(":", " ").split()
        if len(before) > 1 and self._vocabulary.link.fullmatch(before[-1]):
            before.pop()
        words = self._vocabulary.number_words
        return len(before) > 1 and before[-1] in words and before[-2] not in self._vocabulary.function_words

    def has(self, kind: SecretClass, start: int, end: int) -> bool:
        starts = self._starts.get(kind, [])
        index = bisect_left(starts, start)
        return index < len(starts) and starts[index] < end


_NOTHING = LabelSet(kind=ValueKind.NOTHING, secret_class=SecretClass.PASSWORD, words=(), is_part=True)
_GUARD = LabelSet(kind=ValueKind.CODE, secret_class=SecretClass.PASSWORD, words=())
_NOT_LATIN = "\u0370"  # from here on: letters of other scripts
_NO_SPACES = "\u2e80"  # from here on: scripts without spaces between words, or without capitals
_SIGN = r"""[\\"'`*)\]\s]{0,4}(?:[:.?|]{0,3}=>?|:(?!/)|[-=]>|→|\||(?<=["'>]),|(?<!\s)>)"""
_DASH = " - "
_SIGN_BEGINS = r"""(?=[\\"'`*)\]\s]{0,4}[:.?|=>,→-])"""  # most places do not, nor a word of a link
_LINK_LETTERS = 3
_GAP = "[ _-]?"


def is_in_word(character: str) -> bool:
    """Whether it belongs to the word next to it; in scripts without spaces nothing shows that."""
    return character.isalnum() and character < _NO_SPACES


@lru_cache(LABELS_KNOWN_MAX)
def _squashed(label: str) -> str:
    return label.replace(" ", "").replace("_", "").replace("-", "")


def _any(words: Iterable[str]) -> str:
    """An alternation, longest first, as a prefix tree, which is many times faster to match than a flat list.
    A space matches a space, a hyphen, an underscore or nothing."""
    by_first: dict[str, set[str]] = {}
    for word in words:
        by_first.setdefault(word[:1], set()).add(word[1:])
    is_end = by_first.pop("", None) is not None
    branches = sorted(by_first.items(), key=lambda branch: (branch[0] == " ", branch[0]))  # the gap may be empty: last
    options = [(_GAP if first == " " else re.escape(first)) + _any(rest) for first, rest in branches]
    tree = options[0] if len(options) == 1 and not is_end else f"(?:{'|'.join(options)})" if options else ""
    return tree + "?" * (is_end and bool(options))


def _every(languages: Sequence[Language], field: str) -> list[str]:
    return [word for language in languages for word in getattr(language, field)]


def _words_and_joined(languages: Sequence[Language], field: str, *, is_suffix: bool = False) -> str:
    """An alternation of words that need word boundaries, and of those in languages without spaces."""
    apart = _every([language for language in languages if language.has_spaces], field)
    joined = _every([language for language in languages if not language.has_spaces], field)
    joined += [word for word in apart if not word[0].isalnum()]  # "'s" follows the word before it directly
    options = rf"{_any(apart)}(?![^\W\d_])" if is_suffix else rf"(?<![^\W_]){_any(apart)}(?![^\W_])"
    return f"(?:{options}|{_any(joined)})" if joined else options


def _link_pattern(languages: Sequence[Language]) -> re.Pattern[str]:
    """A sign, or a word that links: behind what such a word begins with, since searches try every place."""
    fields = ("late_links", "links", "change_links")
    words = _groups({field: _words_and_joined(languages, field) + "(?!-)" for field in fields})
    every = (word for field in fields for word in _every(languages, field))
    apart = [word[:_LINK_LETTERS] for word in every if word[0].isalnum() and word[0] < _NO_SPACES]
    begins = rf"(?=(?<![\w-]){_any(apart)}|['\u2e80-\uffff])"
    return re.compile(f"{_SIGN_BEGINS}{_groups({'sign': _SIGN, 'dash': _DASH})}|{begins}{words}")


def _groups(patterns: Mapping[str, str]) -> str:
    """One of them, by name."""
    return f"(?:{'|'.join(f'(?P<{name}>{pattern})' for name, pattern in patterns.items())})"


def _label_patterns(known: Sequence[Language]) -> tuple[re.Pattern[str], ...]:
    """One for all labels that begin with a Latin letter, and one for the others of each language."""
    each = [_announcing(language) for language in known]
    latin = [word for words in each for word in words if word[0] < _NOT_LATIN]
    others = [[word for word in words if word[0] >= _NOT_LATIN] for words in each]
    return tuple(re.compile(_any(words)) for words in (latin, *others) if words)


def _announcing(language: Language) -> list[str]:
    words = [word for one in language.labels for word in one.words]
    return [*words, *language.look_alikes, *_guards(language), *language.guards.heads]


def _guards(language: Language) -> list[str]:
    """Terms for a code that opens something: "door code", "Türcode"."""
    guards = language.guards
    return [f"{thing}{owner} {head}" for thing in guards.things for owner in ("", "'s") for head in guards.heads]


@cache
def languages() -> tuple[Language, ...]:
    folder = resources.files("memory.secrets") / "labels"
    return tuple(from_toml((folder / f"{name}.toml").read_bytes(), Language) for name in LANGUAGES)


@cache
def vocabulary() -> Vocabulary:
    known = languages()
    digit = _any(_every(known, "digit_words"))
    things = _any(thing for language in known for thing in language.guards.things)
    function_words = frozenset(_every(known, "function_words"))
    return Vocabulary(
        labels=_label_patterns(known),
        sets=dict.fromkeys([_squashed(word) for language in known for word in _guards(language)], _GUARD)
        | dict.fromkeys(map(_squashed, _every(known, "look_alikes")), _NOTHING)
        | {_squashed(word): one for language in known for one in language.labels for word in one.words},
        heads=frozenset(head for language in known for head in language.guards.heads),
        guarded=re.compile(rf" {_any(_every(known, 'prepositions'))} (?:\w+ ){{0,2}}{things}(?![^\W\d_])"),
        example_words=frozenset(
            word for one in known[0].labels if one.kind is ValueKind.PASSWORD for word in one.words
        ),
        number_word=re.compile(rf"(?:\s?{_words_and_joined(known, 'number_words', is_suffix=True)})?"),
        number_words=frozenset(_every(known, "number_words")),
        link=_link_pattern(known),
        preposition=re.compile(_words_and_joined(known, "prepositions")),
        owner=re.compile(_words_and_joined(known, "owners")),
        join=re.compile(rf"\s*(?:[,;/&、，]|{_any(_every(known, 'joins'))}\s)+\s*"),
        fillers=frozenset(_every(known, "fillers")),
        unit=re.compile(rf"[ -]*{_words_and_joined(known, 'units')}"),
        units=frozenset(_every(known, "units")),
        storage=tuple(_every(known, "storage")),
        function_words=function_words,
        prose=function_words | frozenset(_every(known, "talk")),
        about_secrets=frozenset((*_every(known, "talk"), *_every(known, "units"))),
        digits_spoken=re.compile(rf"{digit}(?:[ ,-]{{0,2}}{digit}){{2,11}}(?![^\W\d_])"),
    )
