"""Builds the prompts for reading, from files in this folder and an operator's examples and topics.

A prompt's version is a hash of everything in it, so that every memory can state what it was made by. The beginning is
identical in all calls, so that a model server's prefix cache applies. Answers are not handled here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

from memory.errors import BadSetting
from memory.learn.reading.answers import CLAIMS, PAIRS, written
from memory.learn.reading.transcript import ScriptedMessage, one_line, transcripts, written_chat
from memory.model import ATTRIBUTES, CATEGORIES, NO_ATTRIBUTE, Act, Message, Relation, Role
from memory.ports import FactContext, StatementPair
from memory.typed import from_json

VERSION_CHARACTERS = 8
EXAMPLE_DAY = "2024-06-03"  # for an operator's examples, which have no date
STATEMENT_CHARACTERS_MAX = 300  # for each side of a pair
CONTEXT_CHARACTERS_MAX = 200  # for each line about the sentence of a side, of which there are at most two
TOPICS_LEAD = "Look for these above all:"
EXAMPLE_FORM = 'a list of {"said", "keep", "before"?, "act"?, "about"?, "attr"?, "values"?, "category"?}'


class Example(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operator's example: the message, the assistant's message before it, whether to keep it, and its labels."""

    said: str
    keep: bool
    before: str = ""
    act: str = Act.STATE.value
    about: str = Relation.USER.value
    attr: str = NO_ATTRIBUTE
    values: tuple[str, ...] = ()
    category: str = "fact"

    def __post_init__(self) -> None:
        is_known = self.act in list(Act) and self.about in list(Relation) and self.category in CATEGORIES
        if not is_known or self.attr not in (NO_ATTRIBUTE, *ATTRIBUTES):
            raise ValueError("an unknown act, about, attr or category")


@dataclass(frozen=True, slots=True)
class Prompt:
    """The messages before each question, identical in all calls."""

    head: tuple[Message, ...]

    @property
    def version(self) -> str:
        seed = "\x1f".join(message.content for message in self.head)
        return hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:VERSION_CHARACTERS]

    def asked(self, question: str) -> list[Message]:
        return [*self.head, Message(Role.USER, question)]


class ShippedChat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A packaged example: a chat, and the claims in it."""

    day: str
    chat: list[ScriptedMessage]
    claims: list[dict[str, Any]]


class _Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    older: str
    newer: str
    what: str
    is_: str = msgspec.field(name="is")
    sure: str
    sentence: str = ""  # of the older one
    others: tuple[str, ...] = ()


def read_prompt(examples: Sequence[Example], topics: Sequence[str]) -> Prompt:
    """Our examples, then the operator's `examples`. `topics`: what to look for in particular."""
    instruction = text_of("read.txt").strip().replace("{attributes}", ", ".join((*ATTRIBUTES, NO_ATTRIBUTE)))
    instruction = instruction.replace("{relations}", ", ".join(Relation))
    if topics:
        instruction += f"\n{TOPICS_LEAD} {'; '.join(map(one_line, topics))}."
    ours = [(_shown(one.day, one.chat), written(CLAIMS, one.claims)) for one in shipped_chats()]
    return _prompt(instruction, [*ours, *filter(None, map(_own_chat, examples))])


@cache
def relate_prompt() -> Prompt:
    ours = from_json(text_of("relate_examples.json"), list[_Pair])
    pairs = [StatementPair(one.older, one.newer, FactContext(one.sentence, one.others)) for one in ours]
    answer = [{"n": n, "what": one.what, "is": one.is_, "sure": one.sure} for n, one in enumerate(ours, 1)]
    return _prompt(text_of("relate.txt").strip(), [(pairs_question(pairs), written(PAIRS, answer))])


def pairs_question(pairs: Sequence[StatementPair]) -> str:
    """The pairs, numbered from 1, each with what their sentences say besides."""
    return "\n".join(f"[{number}] {line}" for number, pair in enumerate(pairs, 1) for line in _pair_lines(pair))


def _pair_lines(pair: StatementPair) -> Iterator[str]:
    yield f"older: {_shortened(pair.older)}"
    yield f"newer: {_shortened(pair.newer)}"
    for side, context in (("older", pair.older_context), ("newer", pair.newer_context)):
        for name, text in (("in", context.sentence), ("with", "; ".join(context.others))):
            if text:
                yield f"{side} stands {name}: {_shortened(text, CONTEXT_CHARACTERS_MAX)}"


@cache
def shipped_chats() -> list[ShippedChat]:
    return from_json(text_of("read_examples.json"), list[ShippedChat])


def own_examples(path: str) -> tuple[Example, ...]:
    """The examples in the operator's file, a JSON list; none without a path. Raises `BadSetting`."""
    if not path:
        return ()
    try:
        return tuple(from_json(Path(path).read_bytes(), list[Example]))
    except OSError as error:
        raise BadSetting(f"memory.extraction.examples: {path!r} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSetting(f"memory.extraction.examples: expected {EXAMPLE_FORM} in JSON, got {error}") from error


def text_of(name: str) -> str:
    """The text of a packaged file."""
    return files("memory.learn.reading").joinpath("prompts", name).read_text(encoding="utf-8")


def _prompt(instruction: str, pairs: Sequence[tuple[str, str]]) -> Prompt:
    head = [Message(Role.SYSTEM, instruction)]
    for question, answer in pairs:
        head += [Message(Role.USER, question), Message(Role.ASSISTANT, answer)]
    return Prompt(tuple(head))


def _shown(day: str, chat: Sequence[ScriptedMessage]) -> str:
    turns, context = written_chat(day, chat)
    return "\n".join(part.text for part in transcripts(turns, context=context))


def _own_chat(example: Example) -> tuple[str, str] | None:
    """The example as a chat; None if nothing in it is the author's own text."""
    turns, context = written_chat(EXAMPLE_DAY, [ScriptedMessage(example.said, example.before)])
    parts = transcripts(turns, context=context)
    if not parts:
        return None
    claim = {
        "u": list(range(1, len(parts[0].numbered_units) + 1)),
        "act": example.act,
        "clause": "",
        "content": "",
        "about": example.about,
        "attr": example.attr,
        "values": list(example.values),
        "category": example.category,
        "sure": "high",
    }
    return parts[0].text, written(CLAIMS, [claim] if example.keep else [])


def _shortened(text: str, most: int = STATEMENT_CHARACTERS_MAX) -> str:
    return one_line(text[: 4 * most])[:most]
