"""Splits a list of messages into exchanges: what the user said, and the final answer.

Pure. System messages and tool traffic belong to no exchange; missing answers are not invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory.model import Message, Role


@dataclass(frozen=True, slots=True)
class Exchange:
    """`said` has at least one user message; in the first exchange it may start with an assistant message."""

    said: tuple[Message, ...]
    answer: str  # the assistant's last message; "" if there is none


def exchanges_of(messages: Sequence[Message]) -> list[Exchange]:
    """The exchanges in order; none if no user message has text."""
    spoken = [m for m in messages if m.role in (Role.USER, Role.ASSISTANT) and m.content.strip()]
    spoken = [m for m in spoken if not m.is_tool_traffic]
    first = next((i for i, m in enumerate(spoken) if m.role == Role.USER), None)
    if first is None:
        return []
    starts = [i for i in range(first + 1, len(spoken)) if spoken[i].role == Role.USER != spoken[i - 1].role]
    return [_exchange(spoken[start:end]) for start, end in pairwise([0, *starts, len(spoken)])]


def _exchange(spoken: Sequence[Message]) -> Exchange:
    answered = max(i for i, m in enumerate(spoken) if m.role == Role.USER) + 1
    return Exchange(tuple(spoken[:answered]), spoken[-1].content if answered < len(spoken) else "")
