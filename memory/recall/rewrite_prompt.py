"""Part of stage 7: the prompt that asks a model to rephrase a vague question, and the validation of its answer.

Pure. The answer is untrusted: it becomes one short line of plain text that shares words with the conversation, or it is
ignored. It is used for searching only, never for the prompt or a log.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from memory.model import Conversation, Message, Role
from memory.recall.query import is_vague
from memory.recall.ranking.lexical import terms

SHOWN_MESSAGES = 6  # three exchanges: enough to tell what "it" refers to, and read by a model in milliseconds
SHOWN_CHARACTERS = 400  # of each, half from either end: an answer of a page would push the question out of sight
TOPIC_WORDS_MAX = 12  # topic words of earlier messages
TOPIC_MESSAGES_MAX = 20  # earlier messages from which they are taken
LINE_CHARACTERS_MAX = 300  # of a query or memory written by the model; longer ones are not usable
ANSWER_TOKENS = 160  # both lines, with their braces

_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_QUOTES = "\"'`“”„‘’«»「」"
_WORD = re.compile(r"[^\W_]+")


class RewriteMode(StrEnum):
    """Which questions a model is asked to rewrite."""

    OFF = "off"
    VAGUE = "vague"  # those that lean on what was said before
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A query that stands on its own; `hypothesis` is a hypothetical memory that answers it (HyDE), "" if not asked
    for.
    """

    query: str
    hypothesis: str = ""

    @property
    def text(self) -> str:
        """Query and hypothesis, as they are embedded and matched by words."""
        return f"{self.query} {self.hypothesis}".rstrip()


class _Answer(msgspec.Struct):
    query: str
    memory: str = ""


def wants_rewrite(conversation: Conversation, mode: RewriteMode) -> bool:
    """Whether to ask the model; a vague question without earlier messages cannot be rephrased."""
    text = conversation.last_user_text().strip()
    if mode is RewriteMode.OFF or not text:
        return False
    return mode is RewriteMode.ALWAYS or (is_vague(text) and len(_spoken(conversation)) > 1)


def rewrite_messages(conversation: Conversation, *, hyde: bool) -> tuple[Message, Message]:
    """The instruction, and the end of the chat as one quoted message, so that the model does not continue the chat."""
    spoken = _spoken(conversation)
    shown = spoken[-SHOWN_MESSAGES:]
    topics = _topic_words(spoken[:-SHOWN_MESSAGES])
    lines = [f"Spoken of before: {', '.join(topics)}"] if topics else []
    lines += [f"{'User' if m.role == Role.USER else 'Assistant'}: {_shortened(m.content)}" for m in shown[:-1]]
    chat = "\n".join(lines) or "(nothing)"
    asked = f"The chat so far:\n{chat}\n\nThe last message:\n{_shortened(shown[-1].content)}"
    return Message(Role.SYSTEM, _instruction("rewrite_hyde" if hyde else "rewrite")), Message(Role.USER, asked)


def rewrite_schema(*, hyde: bool) -> Mapping[str, Any]:
    """The JSON schema of the answer."""
    names = ("query", "memory") if hyde else ("query",)
    return {
        "type": "object",
        "properties": {name: {"type": "string", "maxLength": LINE_CHARACTERS_MAX} for name in names},
        "required": list(names),
        "additionalProperties": False,
    }


def read_rewrite(answer: str, conversation: Conversation, *, hyde: bool) -> Rewritten | None:
    """The model's proposal; None for junk, and for a query that has no word in common with the chat."""
    text = _THOUGHTS.sub("", answer)
    begin, end = text.find("{"), text.rfind("}")
    try:
        proposed = msgspec.json.decode(text[max(begin, 0) : end + 1], type=_Answer)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    query, hypothesis = _line(proposed.query), _line(proposed.memory) if hyde else ""
    said = {term for m in _spoken(conversation)[-SHOWN_MESSAGES - TOPIC_MESSAGES_MAX :] for term in terms(m.content)}
    if not said.intersection(terms(query)):
        return None  # a refusal ("I cannot help with that"), or invented
    return Rewritten(query, hypothesis)


def _spoken(conversation: Conversation) -> Sequence[Message]:
    """User and assistant messages up to the user's last message."""
    spoken = [
        m
        for m in conversation.messages
        if m.role in (Role.USER, Role.ASSISTANT) and not m.is_tool_traffic and m.content.strip()
    ]
    last = next((i for i in reversed(range(len(spoken))) if spoken[i].role == Role.USER), -1)
    return spoken[: last + 1]


def _topic_words(earlier: Sequence[Message]) -> list[str]:
    """The latest content words of the user, each once, in the order in which they were said."""
    said = [m.content for m in earlier[-TOPIC_MESSAGES_MAX:] if m.role == Role.USER]
    words = [word for text in said for word in _WORD.findall(_shortened(text)) if len(word) > 1 and terms(word)]
    latest = list(dict.fromkeys(reversed(words)))[:TOPIC_WORDS_MAX]
    return latest[::-1]


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    if len(line) <= SHOWN_CHARACTERS:
        return line
    half = SHOWN_CHARACTERS // 2
    return f"{line[:half]} … {line[-half:]}"


def _line(text: str) -> str:
    """One line of printable text without surrounding quotes; "" if it is too long."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    line = " ".join(printable.split()).strip(_QUOTES).strip()
    return line if len(line) <= LINE_CHARACTERS_MAX else ""


@cache
def _instruction(name: str) -> str:
    return (files("memory.recall") / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()
