"""Tokenizes text, finds phrases among the tokens, longest first, and guesses the language, without interpreting them.

A token is a word, a number as written ("14th", "3/22", "$50"), one Chinese character, a run of hiragana or of katakana,
or a punctuation mark that separates clauses. A Chinese phrase is therefore a sequence of tokens like any other. The
language is that of the script, or that to which the most words are known.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, wraps
from itertools import chain
from typing import Generic, TypeVar

from memory.language.loader import LANGUAGES, Language, calendar, words

CACHED_TEXTS_MAX = 4_096  # of a sentence or two each: the same memories are compared again and again
# Of a cached text: users' texts must not fill the memory of a process, nor stay in it long after erasure
TEXT_CHARACTERS_MAX = 500

HAN = "\u3400-\u9fff"
_KANA = ("\u3041-\u309fー", "\u30a1-\u30faー")  # hiragana and katakana
_HANGUL = "\uac00-\ud7a3"
_ASIAN = f"{HAN}{''.join(_KANA)}{_HANGUL}"
_TOKEN = re.compile(
    rf"[$€£¥]?\d+(?:[.,:/-]\d+)*(?:[^\W\d_{_ASIAN}]{{1,2}}(?![^\W\d_{_ASIAN}]))?"
    rf"|[{HAN}]|[{_KANA[0]}]+|[{_KANA[1]}]+|[{_HANGUL}]+|[^\W\d_{_ASIAN}]+(?:'[^\W\d_{_ASIAN}]+)*"
    rf"|[.,;:!?。、،؛؟\n()\"–—]|(?<=\s)-(?=\s)|(?<=[{HAN}])\W"
)
_CLITICS = ("'s", "'m", "'re", "'ve", "'ll", "'d")
_NEGATION = "n't"
_SCRIPTS: tuple[tuple[str, str, Language], ...] = (  # first and last letter; a text with kana is Japanese
    ("\u3400", "\u9fff", "zh"),
    ("\u3041", "\u30ff", "ja"),
    ("\uac00", "\ud7a3", "ko"),
    ("\u1100", "\u11ff", "ko"),
    ("\u0400", "\u052f", "ru"),
    ("\u0600", "\u06ff", "ar"),
)
WITH_SCRIPT = frozenset(language for _, _, language in _SCRIPTS)
_LATIN = tuple(language for language in LANGUAGES if language not in WITH_SCRIPT)
_LIKELIER: tuple[Language, ...] = ("en", "de", "es")  # win ties against others
_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})

T = TypeVar("T")
Label = TypeVar("Label")


def cached_by_text(read: Callable[[str], T]) -> Callable[[str], T]:
    """The same function with an LRU cache for short texts."""
    cached = lru_cache(maxsize=CACHED_TEXTS_MAX)(read)

    @wraps(read)
    def recalled(text: str) -> T:
        return cached(text) if len(text) <= TEXT_CHARACTERS_MAX else read(text)

    return recalled


@dataclass(frozen=True, slots=True)
class TokenizedText:
    """`spelled`: as written; `tokens`: in lower case; of the same length."""

    spelled: tuple[str, ...]
    tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhraseMatch(Generic[Label]):
    """`tokens[start:end]` is a phrase; `labels` is empty for a phrase that has to be ignored here."""

    start: int
    end: int
    labels: frozenset[Label]


class PhraseTable(Generic[Label]):
    """Phrases with their labels; one phrase may have several. Of tokens, or of single characters."""

    def __init__(
        self, entries: Iterable[tuple[str, Label]], unmeant: Iterable[str] = (), *, of_characters: bool = False
    ) -> None:
        spelled = _characters if of_characters else spellings
        gathered: dict[tuple[str, ...], set[Label]] = {}
        for phrase in unmeant:
            for tokens in spelled(phrase):
                gathered.setdefault(tokens, set())
        for phrase, label in entries:
            for tokens in spelled(phrase):
                gathered.setdefault(tokens, set()).add(label)
        self._by_first: dict[str, list[tuple[tuple[str, ...], frozenset[Label]]]] = {}
        for tokens, labels in sorted(gathered.items(), key=lambda entry: -len(entry[0])):
            self._by_first.setdefault(tokens[0], []).append((tokens, frozenset(labels)))

    def at(self, tokens: Sequence[str], start: int) -> PhraseMatch[Label] | None:
        """The longest phrase that starts there, or None."""
        for phrase, labels in self._by_first.get(tokens[start], ()):
            end = start + len(phrase)
            if tuple(tokens[start:end]) == phrase:
                return PhraseMatch(start, end, labels)
        return None

    def found(self, tokens: Sequence[str]) -> Iterator[PhraseMatch[Label]]:
        """Phrases in order, without overlap."""
        start = 0
        while start < len(tokens):
            found = self.at(tokens, start)
            if found is not None and found.labels:
                yield found
            start = found.end if found is not None else start + 1

    def labels(self, tokens: Sequence[str]) -> set[Label]:
        return {label for found in self.found(tokens) for label in found.labels}


@cached_by_text
def tokenize(text: str) -> TokenizedText:
    spelled: list[str] = []
    for token in _TOKEN.findall(unicodedata.normalize("NFKC", text).replace("’", "'")):
        spelled.extend(_parts(token))
    return TokenizedText(tuple(spelled), tuple(_variants().get(token, token.casefold()) for token in spelled))


def is_word(token: str) -> bool:
    """Whether it is not punctuation."""
    return token[-1].isalnum()


def is_clitic(token: str) -> bool:
    """Whether it is a part that `tokenize` splits off a word: "n't", "'s"."""
    return token == _NEGATION or token in _CLITICS


def is_han(token: str) -> bool:
    return "\u3400" <= token[0] <= "\u9fff"


def is_dense(token: str) -> bool:
    """Whether it is of a script in which a character says as much as several letters, and has no accents."""
    return _language_of_script(token) in ("zh", "ja", "ko")


def spellings(phrase: str) -> set[tuple[str, ...]]:
    """As written, without accents ("él" is not "el", another word), and with umlauts written out ("ue")."""
    tokens = tokenize(phrase).tokens
    if phrase.isascii() or not tokens or is_dense(tokens[0]):
        return {tokens} if tokens else set()
    bare = tuple(unaccented(token) for token in tokens)
    found = {tokens, tuple(token.translate(_UMLAUTS) for token in tokens)}
    return found if len(bare) == 1 and bare[0] in _every("function_words") else found | {bare}


def _characters(phrase: str) -> set[tuple[str, ...]]:
    """With the spaces at its ends, where a word has to begin or to end."""
    return {tuple(" " * phrase.startswith(" ") + " ".join(tokenize(phrase).tokens) + " " * phrase.endswith(" "))}


def _parts(token: str) -> list[str]:
    """ "don't" becomes "do" and "n't", "Anna's" becomes "Anna" and "'s", "l'avion" becomes "l" and "avion"."""
    if "'" not in token:
        return [token]
    lower = token.lower()
    for ending in (_NEGATION, *_CLITICS):
        if lower.endswith(ending) and len(token) > len(ending):
            return [token[: -len(ending)], token[-len(ending) :]]
    first = lower.partition("'")[0]
    is_elided = first in _every("elided") and not is_clitic(lower)
    return [token[: len(first)], *_parts(token[len(first) + 1 :])] if is_elided else [token]


def unaccented(token: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFD", token) if not unicodedata.combining(c))


@cache
def _every(field: str) -> frozenset[str]:
    return frozenset(word for language in LANGUAGES for word in getattr(words(language), field))


@cache
def _variants() -> dict[str, str]:
    return {written: read_as for language in LANGUAGES for written, read_as in words(language).variants.items()}


@cached_by_text
def candidates(text: str) -> tuple[Language, ...]:
    """Possible languages, most likely first; never empty. Several for ties and mixed texts."""
    tokens = [token for token in tokenize(text).tokens if is_word(token)]
    scripts: Counter[Language] = Counter(filter(None, map(_language_of_script, () if text.isascii() else tokens)))
    if not scripts:
        return _latin(tokens, text)
    if "ja" in scripts:
        scripts["ja"] += scripts.pop("zh", 0)
    found = tuple(language for language, _ in scripts.most_common())
    others = [token for token in tokens if _language_of_script(token) is None and not token[-1].isdecimal()]
    latin = _latin(others, text) if others else ()
    return (*found, *latin) if scripts.total() >= len(others) else (*latin, *found)


def _language_of_script(token: str) -> Language | None:
    return next((language for first, last, language in _SCRIPTS if first <= token[0] <= last), None)


def _latin(tokens: list[str], text: str) -> tuple[Language, ...]:
    known = _languages_of_words()
    scores = Counter(language for token in set(tokens) for language in known.get(token, ()))
    if not text.isascii():
        letters = set(text.lower())
        scores.update(language for language in _LATIN if not letters.isdisjoint(words(language).letters))
    best = max(scores.values(), default=0)
    found = tuple(language for language in _LATIN if scores[language] == best)
    return tuple(language for language in _LIKELIER if language in found) or found


@cache
def _languages_of_words() -> dict[str, list[Language]]:
    """Of the words that are a phrase of their own in a language's files."""
    found: defaultdict[str, list[Language]] = defaultdict(list)
    ambiguous = {word for language in _LIKELIER for word in words(language).meaningful}
    for language in _LATIN:
        single = (tokens for phrase in _phrases(language) for tokens in spellings(phrase) if len(tokens) == 1)
        for word in {tokens[0] for tokens in single}:
            is_sign = word not in ambiguous and (len(word) > 1 or not word.isascii())  # "w/o" is no Polish
            if is_sign or language in _LIKELIER or (len(word) == 1 and word in found):
                found[word].append(language)
    return dict(found)


def _phrases(language: str) -> Iterator[str]:
    own, dates = words(language), calendar(language)
    yield from chain(own.function_words, own.fillers, own.common, own.negators.words)
    yield from chain(own.replies.yes, own.replies.no, own.replies.softeners, own.forgetting.words)
    yield from chain(*dates.months, *dates.weekdays, *dates.units.values(), *dates.relative.values(), dates.numbers)
    yield from chain(dates.this, dates.next, dates.last, dates.coming, dates.latest, *dates.preceding.values())
