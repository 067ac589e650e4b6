"""The training phrases of the classifiers, read from the files beside this module. It must never read any other."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from memory.recall.signals.classifier import Phrase, SignalLabel
from memory.recall.signals.past_talk import PastTalkPhrase

LANGUAGES = ("en", "zh", "es", "de", "fr", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar")
PAST_TALK, OTHER = "past_talk", "other"


def training_phrases() -> tuple[Phrase, ...]:
    """All phrases, in the order of the files. Raises ValueError naming the line that is wrong."""
    return tuple(phrase for name, text in _files("signal_phrases") for phrase in parsed(name, text))


def past_talk_phrases() -> tuple[PastTalkPhrase, ...]:
    """All phrases about past conversations, and against them others of their files and of the signal classifier.

    Of those, personal ones are left out: some of them ask what was said. Raises ValueError naming the line that is
    wrong.
    """
    own = tuple(
        PastTalkPhrase(phrase, is_past_talk=label == PAST_TALK)
        for name, text in _files("past_talk_phrases")
        for label, phrase in _labelled(name, text, (PAST_TALK, OTHER))
    )
    others = (phrase.text for phrase in training_phrases() if phrase.label is not SignalLabel.PERSONAL)
    return own + tuple(PastTalkPhrase(text, is_past_talk=False) for text in others)


def parsed(name: str, text: str) -> list[Phrase]:
    """Phrases of one file: `[label]` opens a section, `#` a comment, every other line is a phrase."""
    return [Phrase(phrase, SignalLabel(label)) for label, phrase in _labelled(name, text, tuple(SignalLabel))]


def _files(folder: str) -> list[tuple[str, str]]:
    found = files("memory.recall.signals") / folder
    names = [f"{language}.txt" for language in LANGUAGES]
    return [(name, (found / name).read_text(encoding="utf-8")) for name in names]


def _labelled(name: str, text: str, labels: Sequence[str]) -> list[tuple[str, str]]:
    phrases: list[tuple[str, str]] = []
    label = ""
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            label = line[1:-1]
            if label not in labels:
                raise ValueError(f"{name}:{number}: a section must be one of {', '.join(labels)}; got {label!r}")
        elif not label:
            raise ValueError(f"{name}:{number}: a phrase before the first [label]")
        else:
            phrases.append((label, line))
    return phrases
