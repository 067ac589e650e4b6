"""Loads the vocabulary files of the languages into validated values. This module contains no words of a language.

The word lists are in a folder per language: `words.toml`, `people.toml`, `attributes.toml`, `calendar.toml`,
`pleasantries.toml`. Each list that affects behaviour has `examples`, which the tests run.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Literal, TypeVar

import msgspec

from memory.model import ATTRIBUTES, Relation

Language = Literal["en", "de", "es", "zh"]

LANGUAGES: tuple[Language, ...] = ("en", "de", "es", "zh")
NAMED_RELATIONS = tuple(relation.value for relation in Relation if relation is not Relation.USER)

Phrases = tuple[str, ...]
"""Phrases as people write them, in lower case; missing accents are tolerated in matching."""

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


class BackReferences(LanguageStruct, frozen=True):
    """Phrases that refer to what was said before: `anywhere`, or as the `closing` word of a clause."""

    anywhere: Phrases
    closing: Phrases
    examples: tuple[tuple[str, bool], ...] = ()


class AskingWords(LanguageStruct, frozen=True):
    """Words of asking to forget or remember. Examples: a sentence, and its content words without them."""

    words: Phrases
    examples: tuple[tuple[str, Phrases], ...] = ()


class EraseRequests(LanguageStruct, frozen=True):
    """Words that ask for deletion. `imperatives` ask at the start of a clause, alone or after `openers`.

    `forms` ask after `openers`, or in a clause that starts with `asking` ("kannst du … löschen"). `fillers` may precede
    all of them. `unmeant` phrases contain one of them and ask for nothing. Examples: a sentence, and whether it asks.
    """

    imperatives: Phrases
    forms: Phrases
    openers: Phrases
    fillers: Phrases
    asking: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, bool], ...] = ()


class Words(LanguageStruct, frozen=True):
    """`words.toml`. `letters`: used by this language only. `variants`: characters read as another one."""

    abbreviations: Phrases
    function_words: Phrases
    fillers: Phrases
    meaningful: Phrases
    common: Phrases
    negators: PhraseList
    replies: Replies
    several: PhraseList
    everything: PhraseList
    previous: BackReferences
    limits: PhraseList
    forgetting: AskingWords
    erasing: EraseRequests
    letters: str = ""
    variants: dict[str, str] = {}


class LabelledPhrases(LanguageStruct, frozen=True):
    """`attributes.toml`: phrases by the attribute that they mention."""

    words: dict[str, Phrases]
    unmeant: Phrases = ()
    examples: tuple[tuple[str, Phrases], ...] = ()


class People(LabelledPhrases, frozen=True):
    """`people.toml`. `persons`: phrases that mean one person, by a key shared by all languages.

    A phrase under several keys means all of them ("ex-wife": an ex, and which one). A phrase without a key stands for
    itself; one under the name of its relation adds nothing. Examples: asked, said, whether the same person is meant.
    """

    persons: dict[str, Phrases] = {}
    same_person: tuple[tuple[str, str, bool], ...] = ()


class Calendar(LanguageStruct, frozen=True):
    """`calendar.toml`. Tuples start with January and Monday. Examples: said on, text, first day, day after the last."""

    months: tuple[Phrases, ...]
    short_months: tuple[Phrases, ...]
    wordy_months: Phrases
    weekdays: tuple[Phrases, ...]
    short_weekdays: tuple[Phrases, ...]
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

    def __post_init__(self) -> None:
        sizes = {"months": 12, "short_months": 12, "weekdays": 7, "short_weekdays": 7}
        for name, size in sizes.items():
            if len(getattr(self, name)) != size:
                raise ValueError(f"expected {size} {name}, got {len(getattr(self, name))}")


class WholePhrases(LanguageStruct, frozen=True):
    """Phrases that may make up a whole text. Examples: a text, and whether they do.

    `{name}` stands for one phrase of that slot, `{name?}` for one or none.
    """

    words: Phrases
    examples: tuple[tuple[str, bool], ...]


class Openings(LanguageStruct, frozen=True):
    """Phrases that may precede the content of a message. Examples: a message, and the rest without its opening."""

    words: Phrases
    examples: tuple[tuple[str, str], ...]


class Pleasantries(LanguageStruct, frozen=True):
    """`pleasantries.toml`. `consent`: agrees to an offer. `slots`: the phrases for the placeholders of the other
    two.
    """

    phrases: WholePhrases
    consent: WholePhrases
    openings: Openings
    slots: dict[str, Phrases] = {}

    def __post_init__(self) -> None:
        parts = (part for phrase in self.phrases.words + self.consent.words for part in Formatter().parse(phrase))
        used = {slot.removesuffix("?") for _, slot, *_ in parts if slot is not None}
        if used != set(self.slots):
            raise ValueError(f"slots without phrases: {used - set(self.slots)}, unused: {set(self.slots) - used}")


AnyLabelled = TypeVar("AnyLabelled", bound=LabelledPhrases)


@cache
def words(language: str) -> Words:
    return _loaded(language, "words", Words)


@cache
def people(language: str) -> People:
    found = complete(f"{language}/people.toml", _loaded(language, "people", People), NAMED_RELATIONS)
    listed = {phrase for phrases in found.words.values() for phrase in phrases}
    if unknown := {phrase for phrases in found.persons.values() for phrase in phrases} - listed:
        raise MalformedLanguage(f"{language}/people.toml: persons without a relation: {sorted(unknown)}")
    return found


@cache
def attributes(language: str) -> LabelledPhrases:
    return complete(f"{language}/attributes.toml", _loaded(language, "attributes", LabelledPhrases), tuple(ATTRIBUTES))


@cache
def calendar(language: str) -> Calendar:
    return _loaded(language, "calendar", Calendar)


@cache
def pleasantries(language: str) -> Pleasantries:
    return _loaded(language, "pleasantries", Pleasantries)


def parsed(name: str, text: str, shape: type[Shape]) -> Shape:
    """The content of the file `name`. Raises `MalformedLanguage`."""
    try:
        return msgspec.convert(tomllib.loads(text), shape)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise MalformedLanguage(f"{name}: {error}") from error


def complete(name: str, labelled: AnyLabelled, labels: tuple[str, ...]) -> AnyLabelled:
    """Raises `MalformedLanguage` unless there are words for each label, and no others."""
    missing, unknown = set(labels) - set(labelled.words), set(labelled.words) - set(labels)
    if missing or unknown:
        raise MalformedLanguage(f"{name}: missing words for {sorted(missing)}, unknown labels {sorted(unknown)}")
    return labelled


def _loaded(language: str, kind: str, shape: type[Shape]) -> Shape:
    path = files("memory.language") / language / f"{kind}.toml"
    return parsed(f"{language}/{kind}.toml", path.read_text(encoding="utf-8"), shape)
