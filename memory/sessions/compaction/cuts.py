"""Decides where a long history is cut, and at which question.

Pure. A cut moves rarely, since everything after the state is new to the model server's prefix cache when it moves; and
it depends only on the messages up to that question, so that the same history is always cut alike, whether its states
were prepared turn by turn or all at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from memory.chat.api_shape import SYSTEM_ROLES
from memory.model import Conversation, Message, Role
from memory.ports import Tokens

TARGET_TOKENS = (
    1_000  # aimed at for state, kept turns and notes: a quarter of the shortest history compacted by default
)
KEPT_TOKENS_MAX = 400  # of the turns that stay verbatim: when they take more, the cut moves
STATE_TOKENS_MAX = 440
MESSAGE_TOKENS = 4  # role and marks of a chat template


@dataclass(frozen=True, slots=True)
class Cut:
    """`at`: index of the first message that stays. `made_at`: of the question at which the cut is made."""

    at: int
    made_at: int


NO_CUT = Cut(0, 0)


def due_cuts(
    conversation: Conversation, *, clean: Collection[int], last: Cut, threshold_tokens: int, tokens: Tokens
) -> Iterator[Cut]:
    """The cuts that are due after `last`, oldest first. `threshold_tokens`: of a history that is compacted at all.

    One complete turn stays verbatim: with more, all of them would be processed again whenever the cut moves.
    """
    starts = turn_starts(conversation)
    before = [0, *accumulate(message_sizes(conversation.messages, tokens, begin=last.at))]
    for place, question in enumerate(starts):
        if question <= last.made_at:
            continue
        size = before[question] - before[last.at]
        turns = place - bisect_right(starts, last.at - 1)  # complete ones between the cut and the question
        if last.at == 0 and size <= threshold_tokens:
            continue
        if last.at and (size <= KEPT_TOKENS_MAX or turns <= 1):
            continue
        # The turn of this question will be complete when the cut is used.
        at = next((starts[n] for n in range(place, -1, -1) if last.at < starts[n] and starts[n] in clean), None)
        if at is not None:
            last = Cut(at, question)
            yield last


def turn_starts(conversation: Conversation) -> list[int]:
    """Indexes of the user messages that begin a turn: the first ever, and each after something else."""
    starts, said = [], ""
    for index, message in enumerate(conversation.messages):
        if message.role == Role.USER != said:
            starts.append(index)
        if message.role not in SYSTEM_ROLES:
            said = message.role
    return starts


def message_sizes(messages: Sequence[Message], tokens: Tokens, *, begin: int = 0) -> Sequence[int]:
    """Tokens of each message, 0 before `begin`. System messages stay in any case and count nothing."""
    return [
        0 if index < begin or message.role in SYSTEM_ROLES else tokens(message.content) + MESSAGE_TOKENS
        for index, message in enumerate(messages)
    ]
