"""Splits a message into units, the sentences and lines that a reader judges one by one, with their positions.

Code, quotations, tables, markup and the quoted part of a mail are units as well, as context, but marked as not the
author's own. The meaning of a sentence plays no role here. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

from mailparser_reply import EmailReplyParser
from markdown_it import MarkdownIt

from memory.language import abbreviations, function_words, month_names
from memory.model import Role, Turn

UNIT_CHARACTERS_MAX = 400  # a longer sentence is split at a comma or a space
CHARACTERS_MAX = 24_000  # of one message; a longer one is a document, whose middle is skipped
# Of the text in which blocks are detected: 0.1 s, at worst 2 s; nothing recorded is longer.
BLOCKS_CHARACTERS_MAX = 100_000
FOREIGN_BLOCKS = frozenset({"fence", "blockquote_open", "table_open", "html_block"})  # indented text is no code
WRAP_CHARACTERS_MIN = 30  # of the longest line of text that an editor wraps
WRAPPED_CHARACTERS_MAX = 400  # before and after a line's end that are looked at
WRAPPED_LINES_MIN = 3  # of a paragraph in which a wrapped line may begin with a capital letter
# Not Polish, by which each line that begins with "Do:" or "Data:" begins a mail; the parser has no others of ours.
MAIL_LANGUAGES = ["en", "de", "es", "zh", "fr", "it", "nl", "ja", "ko"]
MAIL_LINE_CHARACTERS_MAX = 200  # the parser takes time by the square or the cube of a line's length

_ENDS = re.compile(r"(?<=[.!?؟…])[\"'”’)\]*_]*(?=\s)|(?<=[。！？])[”’」』）)]*|\n+")
_BULLET = re.compile(r"\s*(?:(?:[-*•·–—#>]+|\(?\d{1,2}[.)、])[ \t]+)*")
_WORD_BEFORE_STOP = re.compile(r"([^\W\d_][\w.]*|\d{1,2})\.$")
_QUOTED_MAIL = re.compile(r"^.{,200}[:：][ \t]*\n", re.MULTILINE)

_markdown = MarkdownIt("commonmark").enable("table").disable("inline")  # only its block structure is used
_mail = EmailReplyParser(languages=MAIL_LANGUAGES)


@dataclass(frozen=True, slots=True)
class Unit:
    """`message[start:end] == text`, never empty. `is_own`: it may be the author's own text."""

    text: str
    start: int
    end: int
    is_own: bool = True


def units_of(message: str) -> list[Unit]:
    """In order, without overlap; [] for a message without letters and digits. Of a document, both ends are returned.

    Blocks are detected before the middle is skipped, since half a code fence would swap code and text.
    """
    half = CHARACTERS_MAX // 2
    is_document = len(message) > CHARACTERS_MAX
    parts = [(0, half), (len(message) - half, len(message))] if is_document else [(0, len(message))]
    foreign = _foreign_spans(message)
    units = (unit for begin, stop in parts for unit in _units(message, foreign, begin, stop))
    return [unit for unit in units if any(c.isalnum() for c in unit.text)]


def _units(message: str, foreign: list[tuple[int, int]], begin: int, stop: int) -> Iterator[Unit]:
    position = begin
    for start, end in [*_within(foreign, begin, stop), (stop, stop)]:
        yield from _sentences(message, position, start)
        text = message[start:end].strip()
        if text:
            first = message.index(text, start)
            yield Unit(text, first, first + len(text), is_own=False)
        position = end


def _within(spans: list[tuple[int, int]], begin: int, stop: int) -> list[tuple[int, int]]:
    return [(max(start, begin), min(end, stop)) for start, end in spans if start < stop and end > begin]


def _sentences(message: str, begin: int, stop: int) -> Iterator[Unit]:
    start = begin
    for end in [*_boundaries(message, begin, stop), stop]:
        first = _BULLET.match(message, start, end).end()  # type: ignore[union-attr]  # matches "" at least
        yield from _pieces(message, first, end)
        start = end


def _pieces(message: str, start: int, end: int) -> Iterator[Unit]:
    """The text, stripped, in pieces of at most `UNIT_CHARACTERS_MAX`."""
    while start < end:
        cut = min(end, start + UNIT_CHARACTERS_MAX)
        if cut < end:
            window = message[start:cut]
            at = max(window.rfind(mark) for mark in (", ", "; ", "，", "；"))
            at = at if at > UNIT_CHARACTERS_MAX // 4 else window.rfind(" ")
            cut = start + at + 1 if at > 0 else cut
        text = message[start:cut].strip()
        if text:
            first = message.index(text, start)
            yield Unit(text, first, first + len(text))
        start = cut


def _boundaries(message: str, begin: int, stop: int) -> Iterator[int]:
    for match in _ENDS.finditer(message, begin, stop):
        if match[0] == "\n" and _is_wrapped(message, match.start(), begin, stop):
            continue
        if message[match.start() - 1 : match.start()] != "." or not _is_abbreviated(message, match.start()):
            yield match.end()


def _is_wrapped(message: str, at: int, begin: int, stop: int) -> bool:
    """Whether an editor broke the line at `at`: the next word had no room, and no sentence or item begins there."""
    begin, stop = max(begin, at - WRAPPED_CHARACTERS_MAX), min(stop, at + WRAPPED_CHARACTERS_MAX)
    first = max(begin, message.rfind("\n\n", begin, at))
    last = message.find("\n\n", at, stop)
    lines = [line.strip() for line in message[first : last if last >= 0 else stop].split("\n") if line.strip()]
    before = message[max(first, message.rfind("\n", first, at)) : at].strip()
    after = message[at + 1 : stop].partition("\n")[0]
    words = after.split()
    width = max(map(len, lines), default=0)
    if not (before and words) or width < WRAP_CHARACTERS_MIN or len(before) + 1 + len(words[0]) <= width:
        return False
    if _BULLET.match(after).end() > len(after) - len(after.lstrip()) or before.endswith((".", "!", "?", ":", "…")):  # type: ignore[union-attr]  # matches "" at least
        return False
    goes_on = before.split()[-1].casefold() in function_words() or before.endswith(",")
    return goes_on or not words[0][0].isupper() or len(lines) >= WRAPPED_LINES_MIN


def unwrapped(text: str) -> str:
    return " ".join(text.split()) if "\n" in text else text


def _is_abbreviated(message: str, end: int) -> bool:
    """Whether the full stop before `end` belongs to a word ("Dr.", "14. Juni") and does not end a sentence."""
    before = _WORD_BEFORE_STOP.search(message, max(0, end - 12), end)
    if before is None:
        return False
    word, after = before[1].lower(), message[end:].lstrip()[:1]
    if word.isdigit():
        return after.islower() or message[end:].lower().lstrip().startswith(month_names())
    return len(word) == 1 or word in abbreviations() or (after.islower() and "." in word)


def _foreign_spans(message: str) -> list[tuple[int, int]]:
    """Code, quotations, tables, markup and the quoted part of a mail; in order, without overlap."""
    if len(message) > BLOCKS_CHARACTERS_MAX:
        half = BLOCKS_CHARACTERS_MAX // 2
        shift = len(message) - half
        tail = [(start + shift, end + shift) for start, end in _foreign_spans(message[shift:])]
        return _foreign_spans(message[:half]) + tail
    lines = [0]
    for line in StringIO(message, newline=""):  # line ends as in Markdown: str.splitlines knows more of them
        lines.append(lines[-1] + len(line))
    spans = [
        (lines[token.map[0]], lines[min(token.map[1], len(lines) - 1)])
        for token in _markdown.parse(message)
        if token.type in FOREIGN_BLOCKS and token.map
    ]
    tail_at = _mail_tail(message)
    merged: list[tuple[int, int]] = []
    for start, end in sorted([*_within(spans, 0, tail_at), (tail_at, len(message))]):
        if end > start and (not merged or start >= merged[-1][1]):
            merged.append((start, end))
    return merged


def _mail_tail(message: str) -> int:
    """The position of a quoted mail at the end of the message, or the message's length."""
    if not _QUOTED_MAIL.search(message):
        return len(message)
    cut = "\n".join(line[:MAIL_LINE_CHARACTERS_MAX] for line in message.split("\n"))
    headers = next((reply.headers.strip() for reply in _mail.read(cut).replies if reply.headers.strip()), "")
    at = message.find(headers.split("\n", 1)[0]) if headers else -1
    return at if at >= 0 else len(message)


def own_messages(turn: Turn) -> Iterator[str]:
    """The messages that the author typed in this turn, without tool results."""
    return (m.content for m in turn.messages if m.role == Role.USER and not m.is_tool_traffic)
