"""Chats of two hundred turns with names, numbers and decisions planted in them, and the questions that ask for them.

Each question names the strings of which the prompt has to hold every one: checked without a judge. What surrounds them
are messages on several topics with answers of 50 to 200 words, drawn in a fixed order. `FIRST` is one that
tests/data/long_chat.json holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from memory.model import CompactedState, Conversation, Message, Scope
from memory.ports import ResentHistory
from memory.typed import from_json

TURNS = 200
SYSTEM = "You are a helpful assistant. Answer in full sentences."


@dataclass(frozen=True, slots=True)
class Planted:
    """`said` in `turn`, counted from 0, or answered there; `needles` must be in the prompt when `question` is asked."""

    turn: int
    said: str
    question: str
    needles: tuple[str, ...]
    is_answer: bool = False


@dataclass(frozen=True, slots=True)
class Topic:
    """`asked` and `advice` are taken in order, over and over."""

    asked: Sequence[str]
    advice: Sequence[str]


@dataclass(frozen=True, slots=True)
class LongChat:
    name: str
    topics: Sequence[Topic]
    planted: Sequence[Planted] = field(default_factory=tuple)

    def turns(self) -> Iterator[tuple[str, str]]:
        """What the user says and what is answered, two hundred times; a topic holds for ten turns."""
        said = {one.turn: one for one in self.planted if not one.is_answer}
        answered = {one.turn: one for one in self.planted if one.is_answer}
        for turn in range(TURNS):
            topic = self.topics[turn // 10 % len(self.topics)]
            question = topic.asked[turn % len(topic.asked)] if turn not in said else said[turn].said
            length = (3, 5, 4, 9, 3, 6, 4)[turn % 7]
            advice = [topic.advice[(turn * 3 + n) % len(topic.advice)] for n in range(length)]
            if turn in answered:
                advice.insert(1, answered[turn].said)
            yield question, "\n\n".join(advice)

    def messages(self) -> list[dict[str, Any]]:
        """The whole history, with a system message."""
        history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        for question, answer in self.turns():
            history += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return history

    def resent(self, end: int, user_id: str, state: tuple[str, CompactedState] | None = None) -> ResentHistory:
        """The first messages, as a client sends them again. Keys are "k1", "k3", …"""
        messages = self.messages()[:end]
        talk = Conversation(tuple(Message(one["role"], one["content"]) for one in messages))
        keys = {index: f"k{index}" for index, one in enumerate(messages) if one["role"] == "user"}
        return ResentHistory(Scope(user_id), talk, keys, lambda: range(len(messages)), 1_750_000_000.0, state)


FIRST = from_json((Path(__file__).parents[1] / "data" / "long_chat.json").read_bytes(), LongChat)
