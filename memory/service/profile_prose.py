"""Checks the prose that a model has written from the lines of a profile, and what it is asked.

A profile in prose says what its lines say, in fewer words. So it is used only if every name, number and date in it
stands in the lines that its sentence is based on, and the other way round, if nothing is negated or affirmed that was
not, and if it is no longer than the lines. Pinned lines are the user's own words: they are not part of it. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from memory.chat.plain_lines import on_one_line
from memory.language import content_words, is_denied
from memory.language.specific_words import plain_words, specific_words
from memory.model import ProfileLine, ProfileSentence
from memory.ports import Tokens
from memory.ports.writing import GroundedSentence, WritingTask
from memory.service.profile_layout import PROFILE_TOKENS_MAX

LINES_MIN = 3  # fewer are as short as prose can be
SENTENCE_CHARACTERS_MAX = 300
LOST_WORDS_MAX = 0.2  # share of the content words of a line that its sentences may leave out: none of four
NEW_WORDS_MAX = 0.4  # share of the content words of a sentence that none of its lines has

TASK = WritingTask(
    name="profile",
    instruction=(Path(__file__).parent / "profile_prose.txt").read_text(encoding="utf-8"),
    sentences_max=12,
    answer_tokens_max=2 * PROFILE_TOKENS_MAX + 100,  # with the numbers of the lines, and a tokenizer that splits more
)


def material(lines: Iterable[ProfileLine]) -> list[str]:
    """The lines as they are numbered for the writer."""
    return [f"({month}) {said}" for month, said in map(_parts, lines)]


def prose_faults(sentences: Sequence[GroundedSentence], lines: Sequence[ProfileLine], *, tokens: Tokens) -> list[str]:
    """Why this text must not take the place of these lines, for the writer; empty if it may."""
    if not sentences:
        return ["there is no sentence"]
    said = [_parts(line)[1] for line in lines]
    faults: list[str] = []
    for sentence in sentences:
        faults += _faults_of(sentence, [said[number - 1] for number in sentence.sources])
    for number, line in enumerate(said, 1):
        texts = [sentence.text for sentence in sentences if number in sentence.sources]
        lost = _lost(line, " ".join(texts))
        if not texts or lost:
            faults.append(f"line {number} is left out" if not texts else f"line {number} loses: {_listed(lost)}")
    prose = prose_of(sentences, lines, tokens=tokens)
    if sum(one.tokens for one in prose) > sum(line.tokens for line in lines):
        faults.append("it is longer than the lines: unite more of them in one sentence")
    return faults


def prose_of(
    sentences: Sequence[GroundedSentence], lines: Sequence[ProfileLine], *, tokens: Tokens
) -> tuple[ProfileSentence, ...]:
    """The sentences as a prompt shows them: with the months in which their lines were said."""
    shown: list[ProfileSentence] = []
    for sentence in sentences:
        sources = [lines[number - 1] for number in sorted(sentence.sources)]
        months = sorted({_parts(line)[0] for line in sources})
        span = months[0] if len(months) == 1 else f"{months[0]} to {months[-1]}"
        text = f"{sentence.text} ({span})"
        ids = tuple(dict.fromkeys(line.memory_id for line in sources))
        shown.append(ProfileSentence(text, tokens(text), ids))
    return tuple(shown)


def _faults_of(sentence: GroundedSentence, sources: Sequence[str]) -> list[str]:
    text, known = sentence.text, " ".join(sources)
    if on_one_line(text) != text or len(text) > SENTENCE_CHARACTERS_MAX:
        return [f"plain sentences of at most {SENTENCE_CHARACTERS_MAX} characters, without < and >"]
    faults: list[str] = []
    if invented := specific_words(text) - plain_words(known):
        faults.append(f"the lines {_numbers(sentence)} do not say: {_listed(invented)}")
    if is_denied(text) != any(is_denied(source) for source in sources):
        faults.append(f"lines {_numbers(sentence)} say yes where it says no, or the other way round")
    words, told = content_words(text), content_words(known)
    if len(words - told) > NEW_WORDS_MAX * len(words):
        faults.append(f"keep to the words of lines {_numbers(sentence)}")
    return faults


def _lost(line: str, text: str) -> frozenset[str]:
    """The names and numbers of a line that the text does not have, and its other words if too many are missing."""
    lost, words = specific_words(line) - plain_words(text), content_words(line)
    missing = words - content_words(text)
    if len(missing) <= LOST_WORDS_MAX * len(words):
        return lost
    return lost | {word for word in plain_words(line) if content_words(word) & missing}


def _parts(line: ProfileLine) -> tuple[str, str]:
    """The month and the statement of a line of the layout."""
    month, _, said = line.text.removeprefix("- [").partition("] ")
    return month, said


def _numbers(sentence: GroundedSentence) -> str:
    return ", ".join(map(str, sentence.sources))


def _listed(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


__all__ = ["LINES_MIN", "TASK", "material", "prose_faults", "prose_of"]
