"""Renders a window for a chat model: the author's units have consecutive numbers, everything else has none.

The model refers to numbers instead of copying words, so that every quote is verbatim by construction. Pasted blocks and
the assistant's answers are shortened and serve as context; they cannot be claimed. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from memory.learn.reading.replies import question_of
from memory.learn.reading.units import Unit, own_messages, units_of
from memory.model import Message, Role, Scope, Turn

# UTF-8 bytes, about 1,300 tokens in any language: fits into a context of 4,096 with prompt and answer.
PART_BYTES_MAX = 4_500
MESSAGE_BYTES_MAX = 4_000  # of a longer message, the beginning and the end are shown
BEFORE_CHARACTERS = 300  # of the end of the assistant's answer: enough to see what was replied to
FOREIGN_CHARACTERS = 60  # of the beginning of a pasted block
LEFT_OUT = "[…]"


@dataclass(frozen=True, slots=True)
class AuthorMessage:
    """One message of the author. `question`: the assistant's question right before it, in turn `asked_in`, or ""."""

    text: str
    units: tuple[Unit, ...]
    turn: Turn
    question: str = ""
    asked_in: str = ""


@dataclass(frozen=True, slots=True)
class NumberedUnit:
    """The unit behind a number: unit `index` of the message."""

    said: AuthorMessage
    index: int


@dataclass(frozen=True, slots=True)
class Transcript:
    """The input of one call. `numbered_units[n - 1]` is the unit with the number n."""

    text: str
    numbered_units: tuple[NumberedUnit, ...]


@dataclass(frozen=True, slots=True)
class _MessageBlock:
    """A message with the answer before it. `lines`: text, and the index of the unit if the line gets a number."""

    said: AuthorMessage
    before: str
    lines: tuple[tuple[str, int | None], ...]

    @property
    def size(self) -> int:
        return _bytes(self.before) + sum(_bytes(line) for line, _ in self.lines)


def transcripts(turns: Sequence[Turn], *, context: Sequence[Turn]) -> list[Transcript]:
    """One transcript, or several if the window is too long for one call; none if the author typed nothing."""
    parts: list[list[_MessageBlock]] = []
    room = 0
    for block in _blocks(turns, context):
        if block.size > room:
            parts.append([])
            room = PART_BYTES_MAX
        parts[-1].append(block)
        room -= block.size
    return [_transcript(part) for part in parts]


def one_line(text: str) -> str:
    """Prevents user text from imitating the transcript's own lines."""
    return " ".join(text.split())


def _blocks(turns: Sequence[Turn], context: Sequence[Turn]) -> Iterator[_MessageBlock]:
    previous = context[-1] if context else None
    for turn in turns:
        replied_to = previous
        for text in own_messages(turn):
            said = _said(text, turn, replied_to)
            if any(unit.is_own for unit in said.units):
                before = _end(replied_to.answer) if replied_to is not None else ""
                yield _MessageBlock(said, before, _ends_of(list(_lines(said.units))))
            replied_to = None  # only the first message of a turn replies to the answer before it
        previous = turn


def _said(text: str, turn: Turn, replied_to: Turn | None) -> AuthorMessage:
    units = tuple(units_of(text))
    if replied_to is None or not units:
        return AuthorMessage(text, units, turn)
    return AuthorMessage(text, units, turn, question_of(replied_to.answer), replied_to.id)


def _lines(units: Sequence[Unit]) -> Iterator[tuple[str, int | None]]:
    for index, unit in enumerate(units):
        text = one_line(unit.text)
        if unit.is_own:
            yield text, index
        else:
            kind = "code" if text.startswith(("```", "~~~", "<")) else "quoted text"
            yield f"[{kind}] {text[:FOREIGN_CHARACTERS]}…", None


def _ends_of(lines: Sequence[tuple[str, int | None]]) -> tuple[tuple[str, int | None], ...]:
    """The whole message, or of a long one about as much of the beginning as of the end."""
    if sum(_bytes(line) for line, _ in lines) <= MESSAGE_BYTES_MAX:
        return tuple(lines)
    head, tail = _fitting(lines), _fitting(lines[::-1])
    return (*lines[:head], (LEFT_OUT, None), *lines[len(lines) - tail :])


def _fitting(lines: Sequence[tuple[str, int | None]]) -> int:
    """How many of the first lines fit into half of the limit of a message."""
    room = MESSAGE_BYTES_MAX // 2
    for count, (line, _) in enumerate(lines):
        room -= _bytes(line)
        if room < 0:
            return count
    return len(lines)


def _transcript(blocks: Sequence[_MessageBlock]) -> Transcript:
    lines: list[str] = []
    numbered_units: list[NumberedUnit] = []
    day = ""
    for block in blocks:
        today = f"Date: {datetime.fromtimestamp(block.said.turn.local_at, UTC):%Y-%m-%d %A}"
        if today != day:
            lines.append(today)
            day = today
        if block.before:
            lines.append(f"Assistant: {block.before}")
        lines.append("Author:")
        for line, index in block.lines:
            if index is not None:
                numbered_units.append(NumberedUnit(block.said, index))
                line = f"[{len(numbered_units)}] {line}"
            lines.append(line)
    return Transcript("\n".join(lines), tuple(numbered_units))


def _end(answer: str) -> str:
    shown = one_line(answer[-4 * BEFORE_CHARACTERS :])
    return shown if len(shown) <= BEFORE_CHARACTERS else f"…{shown[-BEFORE_CHARACTERS:]}"


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass")) + 6  # its number, and the end of its line


class ScriptedMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message of the author, and the assistant's answer before it, as our own files contain them."""

    said: str
    before: str = ""


def written_chat(day: str, sayings: Sequence[ScriptedMessage]) -> tuple[list[Turn], list[Turn]]:
    """Turns and context of a chat from a file. `day`: YYYY-MM-DD; all is said at noon of that day."""
    at = datetime.fromisoformat(day).replace(hour=12, tzinfo=UTC).timestamp()
    answers = [saying.before for saying in sayings]
    scope = Scope("author", session_id="written")
    turns = [
        Turn(f"t{n}", scope, at + n, (Message(Role.USER, saying.said),), answer=answer)
        for n, (saying, answer) in enumerate(zip(sayings, [*answers[1:], ""], strict=True), 1)
    ]
    context = [Turn("t0", scope, at, (), answer=answers[0])] if answers and answers[0] else []
    return turns, context
