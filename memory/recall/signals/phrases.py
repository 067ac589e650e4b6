"""The signal classifier's training phrases, read from the files beside this module. It must never read any other."""

from __future__ import annotations

from importlib.resources import files

from memory.recall.signals.classifier import Phrase, SignalLabel

LANGUAGES = ("en", "zh", "es", "de")


def training_phrases() -> tuple[Phrase, ...]:
    """All phrases, in the order of the files. Raises ValueError naming the line that is wrong."""
    folder = files("memory.recall.signals") / "signal_phrases"
    return tuple(
        phrase
        for language in LANGUAGES
        for phrase in parsed(f"{language}.txt", (folder / f"{language}.txt").read_text(encoding="utf-8"))
    )


def parsed(name: str, text: str) -> list[Phrase]:
    """Phrases of one file: `[label]` opens a section, `#` a comment, every other line is a phrase."""
    phrases: list[Phrase] = []
    label: SignalLabel | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            if line[1:-1] not in tuple(SignalLabel):
                raise ValueError(
                    f"{name}:{number}: a section must be one of {', '.join(SignalLabel)}; got {line[1:-1]!r}"
                )
            label = SignalLabel(line[1:-1])
        elif label is None:
            raise ValueError(f"{name}:{number}: a phrase before the first [label]")
        else:
            phrases.append(Phrase(line, label))
    return phrases
