"""Loads the vocabulary files of the languages into validated values. This module contains no words of a language.

The word lists are in a folder per language: `words.toml`, `calendar.toml`, `pleasantries.toml`. Each list that affects
behaviour has `examples`, which the tests run.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Annotated, Literal, TypeAlias, TypeVar, get_args

import msgspec

from memory.typed import from_toml

Language = Literal["en", "de", "es", "zh", "fr", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar"]

LANGUAGES: tuple[Language, ...] = get_args(Language)

Phrases = tuple[str, ...]
"""Phrases as people write them, in lower case; missing accents are tolerated in matching."""
OfMonths: TypeAlias = Annotated[tuple[Phrases, ...], msgspec.Meta(min_length=12, max_length=12)]
OfWeekdays: TypeAlias = Annotated[tuple[Phrases, ...], msgspec.Meta(min_length=7, max_length=7)]

Unit = Literal["day", "week", "month", "year"]
Before = Literal["at", "ahead", "ago", "since", "onwards", "until", "before", "after", "range", "or"]
Behind = Literal["ahead", "ago", "since", "onwards", "until", "before", "after", "or"]

Shape = TypeVar("Shape", bound="LanguageStruct")


class MalformedLanguage(ValueError):
    """A vocabulary file is invalid; the message names file and position."""


class LanguageStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base class of the content of a file."""


class PhraseList(LanguageStruct, frozen=True):
    """Phrases of which one has to occur. `unmeant`: longer phrases that contain one and mean something else."""

    words: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, bool], ...] = ()


class Replies(LanguageStruct, frozen=True):
    """Complete short replies; `softeners` may stand next to them."""

    yes: Phrases
    no: Phrases
    softeners: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, Literal["yes", "no", ""]], ...] = ()


class AskingWords(LanguageStruct, frozen=True):
    """Words of asking to forget or remember. Examples: a sentence, and its content words without them."""

    words: Phrases
    examples: tuple[tuple[str, Phrases], ...] = ()


class Words(LanguageStruct, frozen=True):
    """`words.toml`. `letters`: used by few languages. `variants`: characters read as another one. `elided`: written
    together with the next word, with an apostrophe. `particles`: written together with the word before.
    """

    abbreviations: Phrases
    function_words: Phrases
    fillers: Phrases
    meaningful: Phrases
    common: Phrases
    negators: PhraseList
    replies: Replies
    several: PhraseList
    forgetting: AskingWords
    letters: str = ""
    elided: Phrases = ()
    particles: Phrases = ()
    variants: dict[str, str] = {}


class Calendar(LanguageStruct, frozen=True):
    """`calendar.toml`. Tuples start with January and Monday. Examples: said on, text, first day, day after the last."""

    months: OfMonths
    short_months: OfMonths
    wordy_months: Phrases
    weekdays: OfWeekdays
    short_weekdays: OfWeekdays
    this: Phrases
    next: Phrases
    last: Phrases
    coming: Phrases
    latest: Phrases
    joiners: Phrases
    every: Phrases
    vague: Phrases
    unmeant: Phrases
    units: dict[Unit, Phrases]
    relative: dict[Unit, dict[str, int]]
    preceding: dict[Before, Phrases]
    following: dict[Behind, Phrases]
    numbers: dict[str, int]
    ordinals: dict[str, int]
    examples: tuple[tuple[str, str, str, str], ...]
    numeric_order: Literal["day first", "month first", "either"]
    day_follows_month: bool = False
    month_signs: Phrases = ()
    day_signs: Phrases = ()
    year_signs: Phrases = ()
    week_days: tuple[Phrases, ...] = ()
    breaking: Phrases = ()


class WholePhrases(LanguageStruct, frozen=True):
    """Phrases that may make up a whole text; `{name}` stands for one phrase of that slot, `{name?}` for one or none."""

    words: Phrases
    examples: tuple[tuple[str, bool], ...]


class Pleasantries(LanguageStruct, frozen=True):
    """`pleasantries.toml`. `slots`: the phrases for the placeholders of the others."""

    phrases: WholePhrases
    slots: dict[str, Phrases] = {}

    def __post_init__(self) -> None:
        parts = (part for phrase in self.phrases.words for part in Formatter().parse(phrase))
        used = {slot.removesuffix("?") for _, slot, *_ in parts if slot is not None}
        if used != set(self.slots):
            raise ValueError(f"slots without phrases: {used - set(self.slots)}, unused: {set(self.slots) - used}")


@cache
def words(language: str) -> Words:
    return _loaded(language, "words", Words)


@cache
def calendar(language: str) -> Calendar:
    return _loaded(language, "calendar", Calendar)


@cache
def pleasantries(language: str) -> Pleasantries:
    return _loaded(language, "pleasantries", Pleasantries)


def parsed(name: str, text: str, shape: type[Shape]) -> Shape:
    """The content of the file `name`. Raises `MalformedLanguage`."""
    try:
        return from_toml(text, shape)
    except msgspec.DecodeError as error:
        raise MalformedLanguage(f"{name}: {error}") from error


def _loaded(language: str, kind: str, shape: type[Shape]) -> Shape:
    path = files("memory.language") / language / f"{kind}.toml"
    return parsed(f"{language}/{kind}.toml", path.read_text(encoding="utf-8"), shape)
