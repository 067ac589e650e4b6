"""Vocabulary as data: one folder per language, loaded by one module and tested by its own examples.

The functions say which words occur in a text, in the languages it may be written in. What the text means is decided by
models: no rules may be added here for a misunderstood sentence. Pure, except for reading the files once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain, groupby
from typing import Literal

from memory.language.content import content_of
from memory.language.content import content_words as content_words
from memory.language.content import function_words as function_words
from memory.language.loader import LANGUAGES, Language, calendar, words
from memory.language.phrases import WITH_SCRIPT, PhraseTable, candidates, is_word, tokenize

Reply = Literal["yes", "no", ""]

ENDINGS: tuple[Language, ...] = ("ja", "ko")  # in which a negation is an ending, looked for anywhere in a text


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
    return found[0] if len(found) == 1 or not WITH_SCRIPT.isdisjoint(found) else "en"


_BEHIND_MARK = " \t\n!\"'”’»)*_"  # what may stand behind the mark


def is_asked(text: str) -> bool:
    """Whether it ends with a question mark; emphasis and closing quotes behind it count for nothing."""
    return text.rstrip(_BEHIND_MARK).endswith(("?", "？", "؟"))


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
        if language in ENDINGS:
            kept = [list(f" {' '.join([*chain(*kept), *'?' * is_question])} ")]
        if any(_table(language, "negators").labels(clause) for clause in kept):
            return True
    return False


def bare_reply(text: str) -> Reply:
    """Whether the whole text only affirms or denies ("Yes, exactly", "不用了，谢谢"); "" for any other text."""
    tokens = [token for token in tokenize(text).tokens if is_word(token)]
    languages = dict.fromkeys((*candidates(text), *LANGUAGES))  # a single word is known to several
    replies: Iterator[Reply] = (_reply(language, tokens) for language in languages)
    return next((reply for reply in replies if reply), "")


def wants_several(text: str) -> bool:
    """Whether it asks to count, compare, order or list, for which one memory is rarely enough."""
    return any(_table(language, "several").labels(tokenize(text).tokens) for language in candidates(text))


def asked_words(text: str) -> frozenset[str]:
    """`content_words` of a request, without the words of asking."""
    tokens, languages = tokenize(text).tokens, candidates(text)
    spans = [span for language in languages for span in _table(language, "forgetting").found(tokens)]
    named = {position for span in spans for position in range(span.start, span.end)}
    return content_of(tokens, languages, without=named)


def _clauses(tokens: Sequence[str]) -> list[list[str]]:
    """The tokens between punctuation marks, without empty clauses."""
    return [list(clause) for is_clause, clause in groupby(tokens, key=is_word) if is_clause]


def _reply(language: Language, tokens: Sequence[str]) -> Reply:
    """The reply that the tokens form, if they are nothing but a reply."""
    said: set[str] = set()
    start = 0
    while start < len(tokens):
        found = _table(language, "replies", "yes", "no", "softeners").at(tokens, start)
        if found is None or not found.labels:
            return ""
        said |= found.labels
        start = found.end
    return "yes" if "yes" in said and "no" not in said else "no" if "no" in said and "yes" not in said else ""


@cache
def _table(language: Language, section: str, *lists: str) -> PhraseTable[str]:
    """The phrases of these lists of a section of its words, each with its list's name; of characters for endings."""
    own = getattr(words(language), section)
    phrases = ((phrase, name) for name in lists or ("words",) for phrase in getattr(own, name))
    of_characters = section == "negators" and language in ENDINGS
    return PhraseTable(phrases, getattr(own, "unmeant", ()), of_characters=of_characters)
