"""The files of the languages, read once into checked values. It must never hold a word of a language itself.

Every word list stands in a folder beside this module: `words.toml`, `people.toml`, `attributes.toml`, `calendar.toml`,
`pleasantries.toml`.
Each list that a behaviour hangs on has `examples`, which the tests run.
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
"""As people write them, in lower case; matched without regard to accents left out."""

Unit = Literal["day", "week", "month", "year"]
Before = Literal["at", "ahead", "ago", "since", "onwards", "until", "before", "after", "range", "or"]
Behind = Literal["ahead", "ago", "since", "onwards", "until", "before", "after", "or"]

Shape = TypeVar("Shape", bound="LanguageStruct")


class MalformedLanguage(ValueError):
    """A file of a language is not as the loader expects it; the message names file and place."""


class LanguageStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Base of what a file holds."""


class PhraseList(LanguageStruct, frozen=True):
    """Phrases of which one has to occur. `unmeant`: longer ones that contain one of them and mean something else."""

    words: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, bool], ...] = ()


class Replies(LanguageStruct, frozen=True):
    """Whole short replies; `softeners` may stand beside them."""

    yes: Phrases
    no: Phrases
    softeners: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, Literal["yes", "no", ""]], ...] = ()


class BackReferences(LanguageStruct, frozen=True):
    """What points to what was said before: `anywhere`, or as the `closing` word of a clause."""

    anywhere: Phrases
    closing: Phrases
    examples: tuple[tuple[str, bool], ...] = ()


class AskingWords(LanguageStruct, frozen=True):
    """Words of asking to forget or to remember, with what is left of an example without them."""

    words: Phrases
    examples: tuple[tuple[str, Phrases], ...] = ()


class EraseRequests(LanguageStruct, frozen=True):
    """Words by which deletion is asked for. `imperatives` ask where they open a clause, alone or behind `openers`.

    `forms` ask behind `openers`, or in a clause that `asking` opens ("kannst du … löschen"). `fillers` may stand before
    all of them. `unmeant` holds one of them and asks for no deletion. Examples: a sentence, and whether it asks.
    """

    imperatives: Phrases
    forms: Phrases
    openers: Phrases
    fillers: Phrases
    asking: Phrases
    unmeant: Phrases = ()
    examples: tuple[tuple[str, bool], ...] = ()


class Words(LanguageStruct, frozen=True):
    """`words.toml`. `letters`: only this language has them. `variants`: characters that are read as another one."""

    abbreviations: Phrases
    function_words: Phrases
    fillers: Phrases
    meaningful: Phrases
    common: Phrases
    negators: PhraseList
    leaning: PhraseList
    replies: Replies
    several: PhraseList
    everything: PhraseList
    previous: BackReferences
    limits: PhraseList
    forgetting: AskingWords
    clauses: PhraseList
    erasing: EraseRequests
    letters: str = ""
    variants: dict[str, str] = {}


class LabelledPhrases(LanguageStruct, frozen=True):
    """`attributes.toml`: phrases by what they name."""

    words: dict[str, Phrases]
    unmeant: Phrases = ()
    examples: tuple[tuple[str, Phrases], ...] = ()


class People(LabelledPhrases, frozen=True):
    """`people.toml`. `persons`: those of its phrases that are one person, by a key that all languages share.

    A phrase under several keys says all of them ("ex-wife": an ex, and which one). One without a key is its own, one
    under the name of its relation says no more than that. Examples: asked about, said, whether it is that person.
    """

    persons: dict[str, Phrases] = {}
    same_person: tuple[tuple[str, str, bool], ...] = ()


class Calendar(LanguageStruct, frozen=True):
    """`calendar.toml`. Tuples run from January and from Monday. Examples: said on, text, first day, day after."""

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
    """Phrases of which a text may consist. Examples: a text, and whether it does.

    `{name}` stands for one phrase of the slot of that name, `{name?}` for one or none.
    """

    words: Phrases
    examples: tuple[tuple[str, bool], ...]


class Openings(LanguageStruct, frozen=True):
    """What may stand before the matter of a message. Examples: a message, and it without its openings."""

    words: Phrases
    examples: tuple[tuple[str, str], ...]


class Pleasantries(LanguageStruct, frozen=True):
    """`pleasantries.toml`. `consent`: says yes to an offer. `slots`: what the phrases of the other two leave open."""

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
    """Raises `MalformedLanguage` unless there are words for each label, and for nothing else."""
    missing, unknown = set(labels) - set(labelled.words), set(labelled.words) - set(labels)
    if missing or unknown:
        raise MalformedLanguage(f"{name}: missing words for {sorted(missing)}, unknown labels {sorted(unknown)}")
    return labelled


def _loaded(language: str, kind: str, shape: type[Shape]) -> Shape:
    path = files("memory.language") / language / f"{kind}.toml"
    return parsed(f"{language}/{kind}.toml", path.read_text(encoding="utf-8"), shape)
