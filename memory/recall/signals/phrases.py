"""The training phrases of the classifiers, read from the files beside this module. It must never read any other."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files

from memory.model.memories import statement_key
from memory.recall.signals.classifier import KINDS, QuestionKind, SignalLabel
from memory.recall.signals.linear_model import Phrase

LANGUAGES = ("en", "zh", "es", "de", "fr", "it", "pt", "nl", "pl", "ru", "ja", "ko", "ar")
OTHER = "other"


def training_phrases() -> tuple[Phrase, ...]:
    """All phrases, in the order of the files. Raises ValueError naming the line that is wrong."""
    return tuple(phrase for language in LANGUAGES for phrase in phrases_of(language))


def phrases_of(language: str) -> list[Phrase]:
    """All phrases of one file, in order. Raises as `training_phrases`."""
    name, text = _file("signal_phrases", language)
    return parsed(name, text)


def question_phrases() -> tuple[Phrase, ...]:
    """All phrases of each kind, and others of their files and of the signal classifier, each text once.

    Personal ones are left out, as some are of a kind. Raises ValueError naming the line that is wrong.
    """
    own = [
        Phrase(text, None if label == OTHER else QuestionKind(label))
        for kind in KINDS
        for language in LANGUAGES
        for name, content in [_file(f"{kind}_phrases", language)]
        for label, text in _labelled(name, content, (kind, OTHER))
    ]
    others = [Phrase(one.text, None) for one in training_phrases() if one.label is not SignalLabel.PERSONAL]
    phrases: dict[str, Phrase] = {}
    for phrase in (*own, *others):
        same = phrases.get(statement_key(phrase.text))
        if same is None or (same.label is None and phrase.label is not None):
            phrases[statement_key(phrase.text)] = phrase
    return tuple(phrases.values())


def parsed(name: str, text: str) -> list[Phrase]:
    """Phrases of one file: `[label]` opens a section, `#` a comment, every other line is a phrase."""
    return [Phrase(phrase, SignalLabel(label)) for label, phrase in _labelled(name, text, tuple(SignalLabel))]


def _file(folder: str, language: str) -> tuple[str, str]:
    name = f"{language}.txt"
    return name, (files("memory.recall.signals") / folder / name).read_text(encoding="utf-8")


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
