"""What two texts share: whether one may say what the other says, or adds anything, and where its words stand. Pure.

Lexical, and rather too often than too seldom: what it finds is left out of summaries, which costs a summary a sentence,
while what it misses comes back. A text says a statement if it contains it, if it has all its names and numbers and half
of its words, or if it has one of its codes.

Likewise whether a text that a model wrote adds nothing to its sources. A name is a word that is capitalised inside a
sentence, in German also a noun. Forms of a word count as one: they begin alike and differ in a short ending. In scripts
without capitals most pairs of characters have to occur. Of a language without a list of function words, short words
count as such.

And where words stand in a text as whole words and whole numbers. This applies to scripts with upper and lower case,
which all separate words by spaces; a Chinese name stands directly between other characters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.language import is_denied
from memory.language.content import content_words, pairs_of, specific_words
from memory.language.phrases import candidates, is_han, tokenize, unaccented

WORDS_SHARE_MIN, PLAIN_SHARE_MIN = 0.5, 0.6  # of the content words, beside names and numbers, and without any
WORDS_MIN = 2  # a single word is too little, unless it stands there as it was said
CODE_CHARACTERS_MIN = 3  # with a digit; shorter ones, and years, occur by chance
YEARS = range(1900, 2100)
HAN_PHRASE_MIN = 3  # characters
# Share of a Chinese topic's character pairs: four characters make three pairs, of which one may differ.
PAIRS_SHARE_MIN = 0.6
STEM_LETTERS, SHORT_LETTERS, ENDING_LETTERS_MAX = 4, 3, 3  # of forms of a word; a short one is a stem itself
GRAMMAR_LETTERS_MAX, OPENING_LETTERS_MAX = 4, 2  # in a language without a list of function words: "je suis"

_EDGES = " .,;:!?…。，！？"
_CAPITALISED_EVERYWHERE = frozenset(("I", "I'm", "I've", "I'd", "I'll"))
_SENTENCE_ENDS = (".", "!", "?", ":", "。", "！", "？")
_PLAIN_QUOTES = str.maketrans("’‘“”", "''\"\"")
_WORD_EDGES = ".,;:!?()\"'“”’"


@dataclass(frozen=True, slots=True)
class Wording:
    """A statement as it is looked for. `text`: folded; all of a text, unless it `is_phrase`."""

    text: str
    is_phrase: bool
    words: frozenset[str]
    specific: frozenset[str]
    codes: frozenset[str]

    def is_in(self, plain: str) -> bool:
        """Whether a text says it; `plain`: the text as `folded`."""
        if self.is_phrase and not any(word in plain for word in self.specific or self.words):
            return False  # most texts, and fast: thousands of texts are asked for hundreds of statements
        if plain.strip(_EDGES) == self.text or (self.is_phrase and begins_word(self.text, plain)):
            return True
        if any(begins_word(code, plain) for code in self.codes):
            return True
        if len(self.words) < WORDS_MIN or not all(begins_word(word, plain) for word in self.specific):
            return False
        share = WORDS_SHARE_MIN if self.specific else PLAIN_SHARE_MIN
        return sum(begins_word(word, plain) for word in self.words) >= share * len(self.words)


def wording_of(statement: str) -> Wording:
    text, words, specific = folded(statement).strip(_EDGES), content_words(statement), specific_words(statement)
    is_han_phrase = any(map(is_han, text)) and len(text) >= HAN_PHRASE_MIN
    is_phrase = bool(words) and (" " in text or is_han_phrase)  # "yes, please" and "Leeds" alone say too little
    return Wording(text, is_phrase, words, specific, frozenset(filter(_is_code, specific)))


def has_code_of(statement: str, text: str) -> bool:
    """Whether the text has a number or another code of the statement."""
    return any(begins_word(code, folded(text)) for code in wording_of(statement).codes)


def says_all(words: frozenset[str], said: frozenset[str]) -> bool:
    """Whether all words occur. In Chinese: every character and most pairs, since word boundaries are ambiguous."""
    pairs = {word for word in words if is_han(word)}
    has_characters = set("".join(pairs)) <= set("".join(said))
    return words - pairs <= said and has_characters and len(pairs & said) >= PAIRS_SHARE_MIN * len(pairs)


def says_any(text: str, wordings: Iterable[Wording]) -> bool:
    plain = folded(text)
    return any(wording.is_in(plain) for wording in wordings)


def folded(text: str) -> str:
    """As `content_words` folds, with single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _is_code(word: str) -> bool:
    has_digit = any(character.isdigit() for character in word)
    is_year = word.isdecimal() and int(word) in YEARS
    return has_digit and len(word) >= CODE_CHARACTERS_MIN and not is_year


def begins_word(word: str, text: str) -> bool:
    """Whether it stands where a word begins; in scripts without spaces, anywhere."""
    at = text.find(word)
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum() or is_han(word[:1]) or is_han(text[at - 1]):
            return True
        at = text.find(word, at + 1)
    return False


def adds_nothing(text: str, sources: Sequence[str], *, new_words_max: float) -> bool:
    """No name, number or denial that the sources do not have, and at most that share of content words is new."""
    written, known = "\n".join(sources), _known_words(sources)
    numbers = (token for token in tokenize(text).spelled if any(map(str.isdigit, token)))
    inside = (word for before, word in pairwise(text.split()) if not before.endswith(_SENTENCE_ENDS))
    names = {name for name in (word.strip(_WORD_EDGES) for word in inside) if name[:1].isupper()}
    unsaid = {name for name in names - _CAPITALISED_EVERYWHERE if not as_typed(name, written)}
    has_names = all(_has_form(name.casefold(), known) for name in unsaid)
    has_denial = not is_denied(text) or any(map(is_denied, sources))
    words, new = content_words(text), new_words(text, sources)
    is_known = len(new) < len(words) and len(new) <= new_words_max * len(words)
    return is_known and has_names and has_denial and all(as_typed(number, written) for number in numbers)


def new_words(text: str, sources: Iterable[str]) -> set[str]:
    """Content words of which the sources have no form."""
    words, known = content_words(text), _known_words(sources)
    cased = {word for word in words if _is_cased(word[0]) or word[0].isdigit()}
    pairs, said = pairs_of(words - cased), pairs_of(known)
    signs = {sign for pair in pairs for sign in pair if is_han(sign)}
    is_said = len(pairs & said) >= PAIRS_SHARE_MIN * len(pairs) and signs <= set("".join(said))
    short = {word for word in cased if len(word) <= (GRAMMAR_LETTERS_MAX if word in text else OPENING_LETTERS_MAX)}
    unknown = cased - known - (short if len(candidates(text)) > 1 else set())
    return {word for word in unknown if not _has_form(word, known)} | (set() if is_said else pairs - said)


def _has_form(word: str, known: Iterable[str]) -> bool:
    return any(_are_forms(unaccented(word), unaccented(other)) for other in known)


def _are_forms(one: str, other: str) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    stem = max(min(STEM_LETTERS, max(SHORT_LETTERS, shorter)), longer - ENDING_LETTERS_MAX)
    return one[:stem] == other[:stem]


def _known_words(sources: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*map(content_words, sources))


def _continues_word(text: str, at: int, step: int) -> bool:
    """Whether the word or number at `at` continues at its neighbour, `step` (1 or -1) away."""
    beside = at + step
    if not 0 <= beside < len(text):
        return False
    one, other = text[at], text[beside]
    return (one.isdigit() and other.isdigit()) or (_is_cased(one) and _is_cased(other))


def whole_word_positions(words: str, text: str) -> list[int]:
    """The positions of `words` in the text, exactly as written, at word boundaries."""
    found: list[int] = []
    at = text.find(words) if words else -1
    while at >= 0:
        if not (_continues_word(text, at, -1) or _continues_word(text, at + len(words) - 1, 1)):
            found.append(at)
        at = text.find(words, at + 1)
    return found


def as_typed(words: str, quote: str) -> str:
    """The whole words in the quote that equal `words`, ignoring case, width and white space; "" if there are none."""
    sought = "".join(_letter(character) for character in words)
    letters = [(_letter(character), index) for index, character in enumerate(quote)]
    text = "".join(folded for folded, _ in letters)
    places = [index for folded, index in letters for _ in folded]
    at = text.find(sought) if sought else -1
    while at >= 0:
        first, last = places[at], places[at + len(sought) - 1]
        if not (_continues_word(quote, first, -1) or _continues_word(quote, last, 1)):
            return quote[first : last + 1]
        at = text.find(sought, at + 1)
    return ""


def _letter(character: str) -> str:
    return "".join(unicodedata.normalize("NFKC", character.translate(_PLAIN_QUOTES)).casefold().split())


def _is_cased(character: str) -> bool:
    return character.isalpha() and character.lower() != character.upper()
