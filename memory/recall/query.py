"""Query: turns a conversation into one `Query`, and asks a model to rephrase a vague question. Pure.

A question that stands on its own is used as it is. A vague one ("How much?", "And the other one?") is extended with
topic words of what it refers to: the user's earlier messages, back to the latest one that names a topic, and the
assistant's question where the user only agreed.

A model's answer is untrusted: it becomes one short line of plain text that shares words with the conversation, and is
used for searching only, never for the prompt or a log.
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

from memory.language.small_talk import is_pleasantry
from memory.model import Conversation, Message, Query, Role
from memory.recall.ranking.lexical import STOP_CHARACTERS, UNSPACED, terms
from memory.typed import from_json

# The embedding model reads 256 tokens; of a longer message we keep the beginning and the end.
QUERY_CHARACTERS_MAX = 900
HEAD_CHARACTERS = 250  # people name the subject first and ask last
TOPIC_CHARACTERS_MAX = 400  # of the end of an earlier message, searched for topic words
TOPIC_WORDS_MAX = 16  # of one earlier message: more would outweigh the question itself
VAGUE_WORDS_MAX = 3  # a question with fewer words of its own refers to what was said before
EARLIER_MAX = 3  # earlier user messages that a vague question may refer to
SHOWN_MESSAGES = 6  # three exchanges: enough to tell what "it" refers to, and read by a model in milliseconds
SHOWN_CHARACTERS = 400  # of each, half from either end: an answer of a page would push the question out of sight
SHOWN_TOPIC_WORDS_MAX = 12  # topic words of earlier messages
TOPIC_MESSAGES_MAX = 20  # earlier messages from which they are taken
LINE_CHARACTERS_MAX = 300  # of a query or memory written by the model; longer ones are not usable
ANSWER_TOKENS = 160  # both lines, with their braces

_WORDS = re.compile(r"[^\W_]+")
_THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_QUOTES = "\"'`“”„‘’«»「」"
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]")
_PIECES = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[._'’:/-][^\W_{UNSPACED}]+)*")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be but by did do does for from had has have how i if in is it its me much many my of on "
    "one or other s so us we he him his she her hers our ours ones t that the them then there these they this "
    "those to was were what when where which who whom whose why will with would you your can could should about "
    "again also just more please tell und der die das ist wie was wann wo wer mein meine y el la los las es que "
    "como cuando donde quien mi mis de".split()
)


def build_query(conversation: Conversation) -> Query:
    """The last user message, extended with topic words of earlier messages if it is vague."""
    messages = conversation.messages
    asked = next((i for i in reversed(range(len(messages))) if _says_something(messages[i], Role.USER)), None)
    if asked is None:
        return Query(text="")
    text = messages[asked].content.strip()
    if is_vague(text):
        text = " ".join([*_topics_before(messages[:asked]), text])
    return Query(text=_shortened(text, QUERY_CHARACTERS_MAX))


def is_vague(text: str) -> bool:
    """Whether the text has too few content words to be searched for on its own; of a long one, both ends decide."""
    text = _shortened(text, QUERY_CHARACTERS_MAX)
    unspaced = len(_UNSPACED.findall(text))  # about two characters make a word
    words = [w for w in _WORDS.findall(_UNSPACED.sub(" ", text).casefold()) if w not in _FUNCTION_WORDS]
    return len(words) + unspaced / 2 < VAGUE_WORDS_MAX


def topic_words(text: str) -> list[str]:
    """The content words of a text, each once, in order; if there are many, the latest; in unspaced scripts, runs."""
    found: dict[str, None] = {}
    for piece in _PIECES.findall(text[-TOPIC_CHARACTERS_MAX:]):
        word = piece.strip("".join(STOP_CHARACTERS)) if _UNSPACED.match(piece) else piece
        if word and terms(word):
            found.setdefault(word)
    return list(found)[-TOPIC_WORDS_MAX:]


def _says_something(message: Message, role: Role) -> bool:
    return message.role == role and bool(message.content) and not message.content.isspace()


def _topics_before(messages: Sequence[Message]) -> list[str]:
    """Topic words of earlier messages, oldest first, back to the latest user message that is not vague."""
    topics: list[list[str]] = []
    seen = 0
    agrees = True  # the last question refers to the assistant's last words, as an agreement does
    for message in reversed(messages):
        if _says_something(message, Role.ASSISTANT) and not message.is_tool_traffic and agrees:
            topics.append(_asked_about(message.content))
            agrees = False
        if not _says_something(message, Role.USER):
            continue
        seen += 1
        text = message.content.strip()
        agrees = is_pleasantry(text)
        if not agrees:
            topics.append(topic_words(text))
        if seen == EARLIER_MAX or not (agrees or is_vague(text)):
            break
    return [word for words in reversed(topics) for word in words]


def _asked_about(answer: str) -> list[str]:
    """Topic words of the assistant's last one or two sentences; none if there are too many to be one topic."""
    sentences = re.split(r"(?<=[.!?。！？])\s*", answer.strip()[-TOPIC_CHARACTERS_MAX:])
    return topic_words(" ".join([s for s in sentences if s][-1:]))


def _shortened(text: str, characters_max: int) -> str:
    if len(text) <= characters_max:
        return text
    return f"{text[:HEAD_CHARACTERS]} {text[-(characters_max - HEAD_CHARACTERS) :]}"


class RewriteMode(StrEnum):
    OFF = "off"
    VAGUE = "vague"  # those that lean on what was said before
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A query that stands on its own."""

    query: str
    hypothesis: str = ""  # a memory that would answer it (HyDE), if asked for

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
    topics = _topics_shown(spoken[:-SHOWN_MESSAGES])
    lines = [f"Spoken of before: {', '.join(topics)}"] if topics else []
    lines += [f"{'User' if m.role == Role.USER else 'Assistant'}: {_as_shown(m.content)}" for m in shown[:-1]]
    chat = "\n".join(lines) or "(nothing)"
    asked = f"The chat so far:\n{chat}\n\nThe last message:\n{_as_shown(shown[-1].content)}"
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
        proposed = from_json(text[max(begin, 0) : end + 1], _Answer)
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


def _topics_shown(earlier: Sequence[Message]) -> list[str]:
    """The latest content words of the user, each once, in the order in which they were said."""
    said = [m.content for m in earlier[-TOPIC_MESSAGES_MAX:] if m.role == Role.USER]
    words = [word for text in said for word in _WORDS.findall(_as_shown(text)) if len(word) > 1 and terms(word)]
    latest = list(dict.fromkeys(reversed(words)))[:SHOWN_TOPIC_WORDS_MAX]
    return latest[::-1]


def _as_shown(text: str) -> str:
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
