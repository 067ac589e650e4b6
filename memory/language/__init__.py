"""Vocabulary as data: one folder per language, loaded by one module and tested by its own examples.

The functions say which words occur in a text, in the languages it may be written in. What the text means is decided by
models: no rules may be added here for a misunderstood sentence. Pure, except for reading the files once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, takewhile
from typing import Literal

from memory.language.content import content_of, content_words, function_words
from memory.language.detection import candidates
from memory.language.loader import (
    LANGUAGES,
    Calendar,
    Language,
    MalformedLanguage,
    PhraseList,
    attributes,
    calendar,
    people,
    pleasantries,
    words,
)
from memory.language.phrases import PhraseMatch, PhraseTable, is_word, tokenize
from memory.model import Relation

Reply = Literal["yes", "no", ""]

Person = frozenset[str]
"""What a word says about who somebody is to the author: {"pet", "dog"}. Several keys all apply."""


@cache
def abbreviations() -> frozenset[str]:
    """Words after which a full stop does not end a sentence, of all languages; lower case, without the full stop."""
    return frozenset(word.removesuffix(".") for language in LANGUAGES for word in words(language).abbreviations)


@cache
def month_names() -> tuple[str, ...]:
    """German month names in lower case, which may follow the full stop of an ordinal ("14. Juni")."""
    return tuple(name for names in calendar("de").months for name in names)


def language_of(text: str) -> Language:
    """The language by script, then by the number of words known to each language; "en" when uncertain."""
    found = candidates(text)
    return found[0] if len(found) == 1 or "zh" in found else "en"


def is_asked(text: str) -> bool:
    """Whether it ends with a question mark."""
    return text.rstrip().endswith(("?", "？"))


def is_denied(text: str) -> bool:
    """Whether it contains a negator, apart from the "no" that opens a correction or ends a question."""
    clauses = _clauses(tokenize(text).tokens)
    is_question = is_asked(text)
    for language in candidates(text):
        kept = clauses
        while len(kept) > 1 and _reply(language, kept[0]):
            kept = kept[1:]
        if is_question and len(kept) > 1 and _reply(language, kept[-1]) == "no":
            kept = kept[:-1]
        if any(_listed(language, "negators").labels(clause) for clause in kept):
            return True
    return False


def bare_reply(text: str) -> Reply:
    """Whether the whole text only affirms or denies ("Yes, exactly", "不用了，谢谢"); "" for any other text."""
    tokens = [token for token in tokenize(text).tokens if is_word(token)]
    replies: Iterator[Reply] = (_reply(language, tokens) for language in candidates(text))
    return next((reply for reply in replies if reply), "")


def relation_named(text: str) -> Relation | None:
    """The relation to the author of whoever is mentioned; OTHER for several, or for a person in no table."""
    found = _labels(text, _people)
    if not found:
        return None
    return Relation(found.pop()) if len(found) == 1 else Relation.OTHER


def persons_named(text: str) -> frozenset[Person]:
    """People and pets mentioned by their relation to the author; the same keys in every language."""
    tokens = tokenize(text).tokens
    return frozenset(found.labels for language in candidates(text) for found in _persons(language).found(tokens))


def names_same_person(asked: str, said: str) -> bool:
    """Whether `said` mentions the person whom `asked` mentions, or one of several of a kind ("my mum and my dad").

    For a person described by another one ("my wife's sister"), both have to be mentioned.
    """
    persons, known = persons_named(asked), persons_named(said)
    met = [any(one <= other for other in known) for one in persons]
    are_of_a_kind = bool(persons) and bool(frozenset.intersection(*persons))
    return any(met) if are_of_a_kind else bool(met) and all(met)


def asks_to_erase(text: str) -> bool:
    """Whether one of its clauses asks to forget something, in the position of a request."""
    tokens = tokenize(text).tokens
    return any(_asks_to_erase(language, tokens, start) for language in candidates(text) for start in _openings(tokens))


def names_erasing(text: str) -> bool:
    """Whether a word that asks for deletion occurs anywhere in it."""
    tokens = tokenize(text).tokens
    return any(_erasing(language).labels(tokens) & {"imperative", "form"} for language in candidates(text))


def mentions_erasing(text: str) -> bool:
    """Whether such a word occurs, even if it asks for nothing ("don't forget")."""
    tokens = tokenize(text).tokens
    return any(_erasing(language).stands_in(tokens) for language in candidates(text))


def attributes_named(text: str) -> frozenset[str]:
    """Those of `memory.model.ATTRIBUTES` that it mentions ("my address", "where I live")."""
    return frozenset(_labels(text, _attributes))


def names_everything(text: str) -> bool:
    """Whether "everything" or "all of it" occurs; it may still mean everything about one topic."""
    return any(_listed(language, "everything").labels(tokenize(text).tokens) for language in candidates(text))


def wants_several(text: str) -> bool:
    """Whether it asks to count, compare, order or list, for which one memory is rarely enough."""
    return any(_listed(language, "several").labels(tokenize(text).tokens) for language in candidates(text))


def names_previous(text: str) -> bool:
    """Whether it refers to what was just said, explicitly or with a "that" that is not followed by a noun."""
    tokens = tokenize(text).tokens
    return any(True for language in candidates(text) for _ in _pointing(language, tokens))


def is_limited(text: str) -> bool:
    """Whether it is temporary or has an exception ("for now", "except", "除了")."""
    return any(_listed(language, "limits").labels(tokenize(text).tokens) for language in candidates(text))


def asked_words(text: str) -> frozenset[str]:
    """`content_words` of a request, without the words of asking, and without the people and attributes it mentions."""
    tokens = tokenize(text).tokens
    named: set[int] = set()
    for language in candidates(text):
        for table in (_people(language), _attributes(language), _forgetting(language), _listed(language, "everything")):
            named |= _positions(table.found(tokens))
        named |= _positions(_pointing(language, tokens))
    return content_of(tokens, candidates(text), without=named)


def _openings(tokens: Sequence[str]) -> Iterator[int]:
    """The positions at which clauses begin."""
    yield from (at for at, token in enumerate(tokens) if is_word(token) and (not at or not is_word(tokens[at - 1])))


def _asks_to_erase(language: Language, tokens: Sequence[str], start: int) -> bool:
    """For the clause at `start`. A later clause has to ask explicitly, or refer back: "…, forget it"."""
    table, at, is_asking = _erasing(language), start, start == 0
    while at < len(tokens):
        found = table.at(tokens, at)
        if found is None:
            return False
        if "imperative" in found.labels or ("form" in found.labels and is_asking and at > start):
            return is_asking or _points_back(language, tokens, found)
        if "asking" in found.labels and _closes_with_erasing(table, tokens[found.end :]):
            return True
        if not found.labels & {"opener", "filler"}:
            return False
        is_asking = is_asking or "opener" in found.labels
        at = next((next_ for next_ in range(found.end, len(tokens)) if is_word(tokens[next_])), len(tokens))
    return False


def _points_back(language: Language, tokens: Sequence[str], verb: PhraseMatch[str]) -> bool:
    """Whether the clause of the verb contains nothing else but "that"."""
    clause = list(takewhile(is_word, tokens[verb.start :]))
    return any(found.end == len(clause) for found in _closing(language).found(clause))


def _closes_with_erasing(table: PhraseTable[str], tokens: Sequence[str]) -> bool:
    return "form" in table.labels(list(takewhile(is_word, tokens)))


def _pointing(language: Language, tokens: Sequence[str]) -> Iterator[PhraseMatch[str]]:
    yield from _anywhere(language).found(tokens)
    for found in _closing(language).found(tokens):
        rest = list(takewhile(is_word, tokens[found.end :]))
        if not content_of(rest, (language,), without=_positions(_forgetting(language).found(rest))):
            yield found


def _positions(spans: Iterable[PhraseMatch[str]]) -> set[int]:
    return {position for span in spans for position in range(span.start, span.end)}


def _clauses(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens between punctuation marks, without empty clauses."""
    return [list(clause) for is_clause, clause in groupby(tokens, key=is_word) if is_clause]


def _reply(language: Language, tokens: Sequence[str]) -> Reply:
    """The reply that the tokens form, if they are nothing but a reply."""
    said: set[str] = set()
    start = 0
    while start < len(tokens):
        found = _replies(language).at(tokens, start)
        if found is None or not found.labels:
            return ""
        said |= found.labels
        start = found.end
    return "yes" if "yes" in said and "no" not in said else "no" if "no" in said and "yes" not in said else ""


def _labels(text: str, table: Callable[[Language], PhraseTable[str]]) -> set[str]:
    return {label for language in candidates(text) for label in table(language).labels(tokenize(text).tokens)}


@cache
def _listed(language: Language, section: Literal["negators", "several", "everything", "limits"]) -> PhraseTable[str]:
    listed: PhraseList = getattr(words(language), section)
    return _table({section: listed.words}, listed.unmeant)


@cache
def _replies(language: Language) -> PhraseTable[str]:
    replies = words(language).replies
    return _table({"yes": replies.yes, "no": replies.no, "softener": replies.softeners}, replies.unmeant)


@cache
def _forgetting(language: Language) -> PhraseTable[str]:
    return _table({"forgetting": words(language).forgetting.words})


@cache
def _erasing(language: Language) -> PhraseTable[str]:
    own = words(language).erasing
    labelled = {"imperative": own.imperatives, "form": own.forms, "opener": own.openers, "filler": own.fillers}
    return _table({**labelled, "asking": own.asking}, own.unmeant)


@cache
def _anywhere(language: Language) -> PhraseTable[str]:
    return _table({"previous": words(language).previous.anywhere})


@cache
def _closing(language: Language) -> PhraseTable[str]:
    return _table({"previous": words(language).previous.closing})


@cache
def _people(language: Language) -> PhraseTable[str]:
    return _table(people(language).words, people(language).unmeant)


@cache
def _persons(language: Language) -> PhraseTable[str]:
    """What each phrase says about the person: the relation, unless "other", and the person's key, if it has one."""
    own = people(language)
    general = {phrase for label in own.words for phrase in own.persons.get(label, ())}
    keyed = {phrase for phrases in own.persons.values() for phrase in phrases}
    by_relation = {label: listed for label, listed in own.words.items() if label != Relation.OTHER}
    by_itself = {phrase: (phrase,) for listed in own.words.values() for phrase in listed if phrase not in keyed}
    persons = {key: [p for p in listed if p not in general] for key, listed in own.persons.items()}
    entries = [
        (p, label) for table in (by_relation, persons, by_itself) for label, listed in table.items() for p in listed
    ]
    return PhraseTable(entries, own.unmeant)


@cache
def _attributes(language: Language) -> PhraseTable[str]:
    return _table(attributes(language).words, attributes(language).unmeant)


def _table(words_of: Mapping[str, Iterable[str]], unmeant: Iterable[str] = ()) -> PhraseTable[str]:
    return PhraseTable(((word, label) for label, listed in words_of.items() for word in listed), unmeant)


__all__ = [
    "LANGUAGES",
    "Calendar",
    "Language",
    "MalformedLanguage",
    "Person",
    "Reply",
    "abbreviations",
    "asked_words",
    "asks_to_erase",
    "attributes_named",
    "bare_reply",
    "calendar",
    "content_words",
    "function_words",
    "is_asked",
    "is_denied",
    "is_limited",
    "language_of",
    "mentions_erasing",
    "month_names",
    "names_erasing",
    "names_everything",
    "names_previous",
    "names_same_person",
    "persons_named",
    "pleasantries",
    "relation_named",
    "wants_several",
]
