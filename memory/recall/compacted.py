"""Finds the state that replaces the beginning of a long history.

A request only looks up what was prepared after earlier requests: it never waits for a state, and without one the whole
history goes through. A state belongs to the question at which it was made; it is used from the next question on, so
that a question that is sent again gets the same prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from memory.chat.completions import ChatRequest
from memory.chat.history import clean_cuts, is_clean
from memory.chat.plain_lines import on_one_line
from memory.chat.token_estimate import estimated_tokens
from memory.model import Candidate, CompactedState, Conversation, Role, Scope
from memory.ports import CompactedStates, ResentHistory
from memory.recall.notes.past_notes import LATE_NOTE_TOKENS_MIN
from memory.runtime.offload import run_by_weight

CLOSING = ".!。！ "


@dataclass(frozen=True, slots=True)
class FoundState:
    resent: ResentHistory | None = None  # for the next state; None: none is to be made
    state: CompactedState | None = None  # what replaces the beginning of this request; None: nothing


NO_STATE = FoundState()


async def find_state(
    states: CompactedStates, scope: Scope, request: ChatRequest, keys: Mapping[int, str], *, asked_at: float
) -> FoundState:
    """`keys`: of the user messages, by index; `asked_at`: when the request began. Raises `Unavailable`."""
    assert request.conversation is not None
    messages = request.conversation.messages
    newest = next((index for index in reversed(range(len(messages))) if messages[index].role == Role.USER), 0)
    found = await states.find(scope.user_id, [key for index, key in keys.items() if index < newest])
    resent = ResentHistory(scope, request.conversation, keys, partial(clean_cuts, request), asked_at, found)
    if found is None or found[1].cut not in keys:
        return FoundState(resent)
    may_be_cut = await run_by_weight(partial(is_clean, request, found[1].cut), is_heavy=request.is_heavy)
    return FoundState(resent, found[1] if may_be_cut else None)


def keys_after(keys: Mapping[int, str], state: CompactedState | None) -> dict[int, str]:
    """The keys of messages that stay; notes before the others go with them."""
    return dict(keys) if state is None else {index: key for index, key in keys.items() if index >= state.cut}


def room_beside_state(conversation: Conversation, state: CompactedState, *, tokens_max: int) -> int:
    """Tokens for all notes of a prompt that aims at `tokens_max`: what the state and the kept messages leave."""
    kept = sum(estimated_tokens(message.content) for message in conversation.messages[state.cut :])
    return max(LATE_NOTE_TOKENS_MIN, int(tokens_max - state.tokens - kept))


def not_in_state(found: Sequence[Candidate], state: CompactedState | None) -> Sequence[Candidate]:
    """Those that the state does not hold in the same words, alone or as a clause of a sentence."""
    if state is None:
        return found
    told = "\n".join(item.text.casefold() for segment in state.stretches for item in segment.items)
    return [one for one in found if on_one_line(one.memory.content).casefold().rstrip(CLOSING) not in told]


def in_receipt(state: CompactedState | None) -> dict[str, int]:
    return {} if state is None else {"compacted_messages": state.cut, "tokens_saved": state.saved_tokens}
