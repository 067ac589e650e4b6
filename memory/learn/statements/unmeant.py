"""Which sentences of the user say nothing about them, though they wrote them: suppositions, examples, fiction, jokes.

A case that is put goes on until it has been asked about; what is asked for somebody else is about that person wherever
it says "I"; a joke that is taken back takes along what stands before it. An example of what the user has just told of
themselves is meant. Never rewrites: what is left are sentences, and parts of them, at their places. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory.learn.statements import unmeant_words as words
from memory.learn.statements.remembering import asks_to_remember
from memory.learn.statements.salience import is_question, is_request
from memory.learn.words.lexicon import FIRST_PERSON, RELATIONS, RELATIONS_ZH, ROLE_PLAY, language_of
from memory.learn.words.sentences import Sentence

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_THEIR_PERSON = re.compile(
    rf"\b(?:my|our|mein\w*|unser\w*|mis?|nuestr[oa]s?) (?:\w+ )?(?:{RELATIONS.pattern})|"
    rf"我的?(?:{RELATIONS_ZH.pattern})",
    re.IGNORECASE,
)
_SAYS_SOMETHING = 2  # letters or digits beside the words that take a joke back or name the asker; fewer say nothing


def without_unmeant(message: str, sentences: Sequence[Sentence]) -> list[Sentence]:
    """Those of `sentences`, or parts of them, that are meant, in order. `sentences`: of `message`, in order."""
    for_another = any(words.ASKS_FOR_ANOTHER.search(sentence.text) for sentence in sentences)
    meant: list[Sentence] = []
    is_putting_a_case = False
    previous: Sentence | None = None
    for sentence in sentences:
        is_apart = previous is not None and _BLANK_LINE.search(message, previous.end, sentence.start) is not None
        is_real = words.IN_REALITY.match(sentence.text) or asks_to_remember(sentence.text)
        if is_apart or is_real:
            is_putting_a_case = False
            for_another = for_another and not is_real
        begun = is_putting_a_case or _puts_a_case(sentence.text, previous)
        is_putting_a_case = begun and not _asks(sentence)
        if words.TAKEN_BACK.search(sentence.text):
            meant = _after_the_joke(sentence, previous, meant)
        elif not (begun or _is_unreal(sentence.text) or (for_another and _is_anothers(sentence.text))):
            meant += _before_a_case(sentence)
        previous = sentence
    return meant


def takes_back(message: str) -> bool:
    """Whether it opens with words that make a joke of what was said before it."""
    match = words.TAKEN_BACK.search(message)
    return match is not None and _letters(message[: match.start()]) < _SAYS_SOMETHING


def _letters(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _puts_a_case(text: str, previous: Sentence | None) -> bool:
    if words.PUTS_A_CASE.match(text):
        return True
    example = words.EXAMPLE.match(text)
    return example is not None and not (previous and _tells(previous.text))


def _asks(sentence: Sentence) -> bool:
    """Whether it comes to the question for which the case was put. What puts it is no request, however it reads."""
    language = language_of(sentence.text)
    opening, *more = re.split(r"[,;，；]\s*", sentence.text)
    last = more[-1] if more else "" if words.PUTS_A_CASE.match(opening) else opening
    return sentence.is_marked_question or is_question(last, language) or is_request(last, language)


def _tells(text: str) -> bool:
    """Whether it says something of the user, so that an example of it does, too."""
    language = language_of(text)
    if is_question(text, language) or is_request(text, language) or words.WANTS_TO_KNOW.search(text):
        return False
    return bool(FIRST_PERSON[language].search(text)) and not _is_unreal(text)


def _is_unreal(text: str) -> bool:
    openings = (words.HYPOTHETICAL, words.PUTS_A_CASE, words.PRETENDS, ROLE_PLAY)
    return any(pattern.match(text) for pattern in openings) or any(
        pattern.search(text) for pattern in (words.FICTION, words.EXERCISE)
    )


def _is_anothers(text: str) -> bool:
    """Whether "I" and "me" are somebody else in it (not the "my" of "my mother"), or it only says for whom is asked."""
    rest = words.ASKS_FOR_ANOTHER.sub(" ", text)
    says_i = FIRST_PERSON[language_of(text)].search(_THEIR_PERSON.sub(" ", rest))
    return says_i is not None or _letters(rest) < _SAYS_SOMETHING


def _after_the_joke(sentence: Sentence, previous: Sentence | None, meant: list[Sentence]) -> list[Sentence]:
    """Without what was said in jest: what stands before the words that say so. What follows them is meant."""
    match = words.TAKEN_BACK.search(sentence.text)
    if match is None:
        return meant
    if _letters(sentence.text[: match.start()]) < _SAYS_SOMETHING and previous is not None:
        meant = [kept for kept in meant if kept.end <= previous.start]
    rest = _part(sentence, match.end(), len(sentence.text))
    return [*meant, rest] if _letters(rest.text) else meant


def _before_a_case(sentence: Sentence) -> list[Sentence]:
    """The sentence up to where it puts a case or gives an example of something that is not told."""
    text = sentence.text
    case = words.PUTS_A_CASE_WITHIN.search(text)
    example = words.EXAMPLE.search(text, 1)
    if case is None and example is not None and not _tells(text[: example.start()]):
        case = example
    if case is None:
        return [sentence]
    head = _part(sentence, 0, case.start())
    return [head] if _tells(head.text) else []


def _part(sentence: Sentence, start: int, end: int) -> Sentence:
    piece = sentence.text[start:end]
    lead = len(piece) - len(piece.lstrip(" \t,;:.!?…，。！；：)）~"))
    first = start + lead
    text = sentence.text[first:end].rstrip()
    return replace(sentence, text=text, start=sentence.start + first, end=sentence.start + first + len(text))


__all__ = ["takes_back", "without_unmeant"]
