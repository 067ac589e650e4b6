"""Turns that an application imports from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory.chat.exchanges import Exchange
from memory.model import Turn, TurnStatus
from memory.runtime.offload import run_each_offloaded


async def imported_turns(
    first: Turn, exchanges: Sequence[Exchange], *, new_id: Callable[[], str], redact: Callable[[str], str]
) -> list[Turn]:
    """A turn for each exchange, a millisecond apart, which keeps their order."""
    return [
        await _imported(replace(first, id=new_id(), at=first.at + ordinal / 1000), exchange, redact)
        for ordinal, exchange in enumerate(exchanges)
    ]


async def _imported(turn: Turn, exchange: Exchange, redact: Callable[[str], str]) -> Turn:
    """The turn with what was said in that exchange, without secrets, as if its answer came at once."""
    *texts, answer = await run_each_offloaded(redact, [*(one.content for one in exchange.said), exchange.answer])
    said = [replace(one, content=text) for one, text in zip(exchange.said, texts, strict=True)]
    return replace(turn, messages=tuple(said), status=TurnStatus.CLOSED, answer=answer, answered_at=turn.at)
