"""Turns that an application imports from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from memory.chat.exchanges import Exchange
from memory.model import Turn, TurnStatus
from memory.runtime.offload import run_each_offloaded


async def imported_turn(turn: Turn, exchange: Exchange, redact: Callable[[str], str]) -> Turn:
    """The turn with what was said in that exchange, without secrets, as if its answer came at once."""
    *texts, answer = await run_each_offloaded(redact, [*(one.content for one in exchange.said), exchange.answer])
    said = [replace(one, content=text) for one, text in zip(exchange.said, texts, strict=True)]
    return replace(turn, messages=tuple(said), status=TurnStatus.CLOSED, answer=answer, answered_at=turn.at)


__all__ = ["imported_turn"]
