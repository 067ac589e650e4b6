"""Text that the user presents: the line that announces it, and how far it goes.

"Translate this: …", "John wrote me this:", "File: notes.txt", 这是我朋友写的：. What follows is that text, until the
user plainly speaks again. What announces the user themselves ("Here is something about me:") is no such line, and
neither is what they have written of themselves. Never looks at what the text says, except where somebody is quoted:
that is foreign only if it says "I". Patterns only, each linear in its text. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory.learn.statements import presented_words as words
from memory.learn.words.lexicon import FIRST_PERSON, language_of

ANNOUNCEMENTS_MAX = 30  # nobody presents more in one message: what follows was pasted

_ANNOUNCEMENTS = (
    words.REQUEST,
    words.REQUEST_ENDED,
    words.SHOWN,
    words.FORWARDED,
    words.FILE,
    words.SHOWN_ZH,
    words.SPEECH,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s|[。！？\n]")
QUOTATIONS = (
    re.compile(r"“([^”]{1,4000})(?:”|\Z)"),
    re.compile(r"«([^»]{1,4000})»"),
    re.compile(r"„([^“”]{1,4000})[“”]"),
    re.compile(r"[「『]([^」』]{1,4000})[」』]"),
    re.compile(r"(?<![\w\"])\"([^\"]{1,4000})\"(?!\w)"),
    re.compile(r"(?<![^\s(:,;])['‘]((?:[^'‘’\n]|(?<=\w)['’](?=\w)){1,2000})['’](?!\w)"),
)


def presented(message: str, typed: str) -> Iterator[tuple[int, int]]:
    """Where texts stand that are announced as such, as [start, end), in order and apart.

    `typed`: the message with blocks of code and the like already turned into line ends, as long as it was. Of a
    portrait that the user wrote of themselves only the announcement is given: it says nothing, and the rest is theirs.
    """
    position = 0
    for number, (announcement, is_speech) in enumerate(_announcements(typed)):
        start = announcement.end()
        if announcement.start() < position or words.ABOUT_ONESELF.search(announcement.group()):
            continue
        if number >= ANNOUNCEMENTS_MAX:
            yield announcement.start(), len(typed)
            return
        if words.OWN_PORTRAIT.search(announcement.group()):
            yield announcement.span()
            position = start
            continue
        end = _end_of_delimited(message, typed, start) or _end_of(typed, start, is_speech=is_speech)
        if typed[start:end].strip() and (not is_speech or says_i(_first_sentence(typed[start:end]))):
            yield start, end
            position = end


def _announcements(typed: str) -> list[tuple[re.Match[str], bool]]:
    """In order, each with whether it quotes somebody."""
    found = [(match, kind is words.SPEECH) for kind in _ANNOUNCEMENTS for match in kind.finditer(typed)]
    return sorted(found, key=lambda one: one[0].end())


def says_i(text: str) -> bool:
    """Whether somebody speaks of themselves in it. Asked of a few words, whose language is not sure."""
    return any(FIRST_PERSON[language].search(text) for language in {language_of(text), "en", "de", "zh"})


def _first_sentence(text: str) -> str:
    """After a greeting: whoever quotes others in the first person begins so."""
    greeting = words.GREETING.match(text)
    return _SENTENCE_END.split(text[greeting.end() if greeting else 0 :].strip(), maxsplit=1)[0]


def dialogue_lines(message: str) -> Iterator[tuple[int, int]]:
    """Lines of a talk between others: "A: …", "B: …", or two names of which one speaks again."""
    lines = list(words.SPEAKER.finditer(message))
    labels = [line["label"] for line in lines]
    is_lettered = len({label for label in labels if len(label) == 1}) >= 2
    is_named = len(set(labels)) >= 2 and len(set(labels)) < len(labels)
    if is_lettered or is_named:
        yield from (line.span() for line in lines)


def _end_of_delimited(message: str, typed: str, start: int) -> int | None:
    """Where the quotation or the block ends that a presented text consists of; None: it is not delimited."""
    first = len(message) - len(message[start:].lstrip())
    quotation = next((match for pattern in QUOTATIONS if (match := pattern.match(typed, first))), None)
    if quotation:
        remark = words.REMARK.match(typed, quotation.end())
        return remark.end() if remark else quotation.end()
    if first == len(message) or typed[first] == message[first]:
        return None
    is_left = (at for at in range(first, len(typed)) if typed[at] == message[at] and not typed[at].isspace())
    return next(is_left, len(typed))


def _end_of(message: str, start: int, *, is_speech: bool) -> int:
    """Where the user speaks again, or the end of the message. Speech that begins in its line ends with it, too."""
    line = message.find("\n", start)
    if is_speech and line >= 0 and message[start:line].strip():
        return line
    after_blank = False
    while line >= 0:
        begin = line + 1
        line = message.find("\n", begin)
        text = message[begin : line if line >= 0 else len(message)]
        if text.strip() and (
            words.SPEAKS_AGAIN_AT_ONCE.match(text) or (after_blank and words.SPEAKS_AGAIN.match(text))
        ):
            return begin
        after_blank = not text.strip()
    return len(message)


__all__ = ["QUOTATIONS", "dialogue_lines", "presented", "says_i"]
