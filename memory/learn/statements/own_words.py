"""Which of a message's words are the user's own, and which of these are meant: the one place where that is decided.

Every strategy of extraction goes by it, and so does whatever listens to what the user asks for. Three questions, one
after the other: what is no talk of theirs (`foreign`), which sentences are left (`sentences`), and which of these say
how things are (`unmeant`). Never rewrites a character; everything keeps its place in the message. Pure.
"""

from __future__ import annotations

from memory.learn.statements.foreign import without_foreign
from memory.learn.statements.unmeant import takes_back, without_unmeant
from memory.learn.words.sentences import Sentence, sentences_of

MESSAGE_CHARACTERS_MAX = 20_000  # past it a message is a document, whatever it says


def own_sentences(message: str) -> list[Sentence]:
    """The sentences that the user said themselves, meant or not, in order; [] for a document."""
    if len(message) > MESSAGE_CHARACTERS_MAX:
        return []
    return sentences_of(message, without_foreign(message))


def meant_sentences(message: str) -> list[Sentence]:
    """Those of them, or parts of them, that tell how things are for the user, and whatever they ask for; in order."""
    return without_unmeant(message, own_sentences(message))


def taken_back_by(message: str, earlier: str) -> str:
    """What the user told last in their message before this one, where this one takes it back as a joke, or ""."""
    said = meant_sentences(earlier) if len(message) <= MESSAGE_CHARACTERS_MAX and takes_back(message) else []
    return next((sentence.text for sentence in reversed(said) if not sentence.is_marked_question), "")


def meant_text(message: str) -> str:
    """The message, as long as it was, with line ends for all that is foreign or not meant: for all of a document."""
    if len(message) > MESSAGE_CHARACTERS_MAX:
        return "\n" * len(message)
    text = without_foreign(message)
    sentences = sentences_of(message, text)
    meant = without_unmeant(message, sentences)
    for sentence in sentences:
        parts = [part for part in meant if sentence.start <= part.start < sentence.end]
        first, last = (parts[0].start, parts[-1].end) if parts else (sentence.end, sentence.end)
        gaps = ((sentence.start, first), (last, sentence.end))
        for start, end in gaps:
            text = text[:start] + "\n" * (end - start) + text[end:]
    return text


__all__ = ["meant_sentences", "meant_text", "own_sentences", "taken_back_by"]
