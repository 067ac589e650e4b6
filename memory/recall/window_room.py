"""Computes how many tokens of notes a request has room for, before prompt, notes and answer exceed the model's window.

Pure. The window is not ours to fill: what the client asks for comes first, and the notes take what is left. Tokens are
estimates (`memory.chat.token_estimate`), corrected by what the server counted for a sample where it can count.
"""

from __future__ import annotations

from memory.chat.completions import ChatRequest
from memory.chat.token_estimate import answer_limit, estimated_prompt
from memory.model import CompactedState, ModelWindow

# Notes are counted in the packaged encoder's tokens; a tokenizer that splits dates and numbers into digits counts up
# to a quarter more.
NOTE_TOKENS_MARGIN = 1.25
ROOM_MAX = 4_000  # more than all notes ever take: beyond it there is nothing to compute


def room_for_notes(
    request: ChatRequest, window: ModelWindow, *, answer_reserve: int, state: CompactedState | None = None
) -> int | None:
    """Tokens for all notes together, as we count them; None: the window does not bound them.

    `answer_reserve`: kept for the answer of a request that sets no limit; a server gives it the rest of the window.
    `state`: what replaces the beginning of the history.
    """
    limit = answer_limit(request)
    available = window.tokens - (answer_reserve if limit is None else limit)
    if len(request.body) + ROOM_MAX * NOTE_TOKENS_MARGIN <= available:  # no text has more tokens than bytes
        return None
    begin, added = (state.cut, state.tokens) if state is not None else (0, 0)
    prompt = estimated_prompt(request, begin=begin) + added
    left = (available - prompt * window.per_estimate) / NOTE_TOKENS_MARGIN
    return None if left >= ROOM_MAX else max(0, int(left))
