"""Rules of conversation trees that hold on every adapter: what is filled in, what is resumed, and the limits. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from memory.adapters.turn_rules import TAUGHT
from memory.model import Message, SentExchange, Turn, TurnStatus
from memory.model.exchanges import folded, is_distinctive, words_of

POSITIONS_MAX = 50_000  # of one user; about 300 bytes each
PRUNED_EVERY = 256  # positions, or digests
CANDIDATES_MAX = 50  # turns with the same prefix that are compared: some clients begin thousands of chats alike
SHIFT_TURNS_MAX = 500  # of one kind, settled at a time
OVERLAP_SECONDS_MIN = 0.05  # of two requests at the same time: a client may send the next before we see an answer's end
LOOKS_MAX = 50  # exchanges with the same words that are compared
DIGESTS_MAX = 50_000  # of what one user said; about 150 bytes each
RETURN_SECONDS_MAX = 86_400.0  # after a gap: conversations that begin later with unknown exchanges did not begin in it
GAP_SECONDS_MIN = 5.0  # a shorter one without a lost turn is a restart: hardly anybody begins a conversation in it
EXCHANGE_SECONDS_MIN = 1.0  # between two exchanges of a conversation, whoever types and whatever answers
STEP_SECONDS = 0.001  # keeps filled-in turns in order

Node = TypeVar("Node")


@dataclass(frozen=True, slots=True)
class BranchPosition(Generic[Node]):
    """Where a request continues. `missing`: exchanges after `parent`, or all earlier ones, that are not known.

    `replaced`: the first turn of a conversation, whose messages the request repeats and adds to.
    """

    parent: Node | None
    missing: Sequence[SentExchange] = ()
    replaced: Node | None = None


@dataclass(frozen=True, slots=True)
class Continuation(Generic[Node]):
    """A recorded turn after another one: its position, what the user said in it, and its answer."""

    node: Node
    said: Sequence[Message]
    answer: str


def recorded_as(exchange: SentExchange, after: Sequence[Continuation[Node]]) -> Node | None:
    """That which was recorded in other words, or with another answer. `after`: the newest first."""
    words, answer = words_of(exchange.said), folded(exchange.answer)
    answered = [one for one in after if folded(one.answer) == answer]
    said = [one for one in after if words_of(one.said) == words]
    both = [one for one in said if one in answered]
    found = both or (is_distinctive(words) and said) or (is_distinctive(answer) and answered)
    return found[0].node if found else None


def stage_when_resumed(status: TurnStatus, reached: str) -> str:
    """Of a turn that was abandoned: where it was then, or where it would be by now."""
    if reached == "learnt":
        return "learnt"
    if status is TurnStatus.OPENED:
        return "open"
    return "ready" if status in TAUGHT else "nothing"


def seconds_to_begin(exchanges: int, *, is_loss: bool) -> float:
    """How long a gap has to be, so that a conversation may have begun in it with so many exchanges.

    `is_loss`: a turn was lost when it began, which may have been the first of them.
    """
    if is_loss:
        return (exchanges - 1) * EXCHANGE_SECONDS_MIN
    return max(GAP_SECONDS_MIN, exchanges * EXCHANGE_SECONDS_MIN)


def filled_in(before: Turn, exchange: SentExchange, *, tree_id: str, number: int, count: int, said_from: float) -> Turn:
    """The turn of that exchange, the `number`th from 0 of `count` that are filled in before another one.

    Its id derives from its position, so that two processes, or two tabs, fill it in once. `tree_id`: "" at the
    beginning of a conversation.
    """
    seed = "\x1f".join((before.scope.user_id, exchange.key, tree_id))
    at = min(said_from + (number + 1) * STEP_SECONDS, before.at - (count - number) * STEP_SECONDS)
    return replace(
        before,
        id="f-" + hashlib.sha256(seed.encode()).hexdigest()[:32],
        at=at,
        messages=exchange.said,
        status=TurnStatus.FILLED_IN,
        answer=exchange.answer,
        answered_at=at,
        trace_id="",
        receipt_id="",
    )
