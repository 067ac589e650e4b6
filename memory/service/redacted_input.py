"""What applications give to be stored, without secrets, by the same policy as what is said in chats.

A memory that the policy would drop is refused: an application is to learn that it was not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memory.chat.exchanges import Exchange
from memory.errors import BadInput
from memory.model import Turn, TurnStatus
from memory.model.memories import CONTENT_CHARACTERS_MAX
from memory.runtime.offload import run_each_offloaded, run_offloaded
from memory.secrets.plain_text import PLACEHOLDER
from memory.service.requests import MemoryEdit, NewMemory


async def redacted_items(items: Sequence[NewMemory], redact: Callable[[str], str]) -> list[NewMemory]:
    """Those that keep their secrets are unchanged. Raises `BadInput`."""
    return [
        item
        if item.keeps_secrets
        else replace(item, content=await _redacted(item.content, redact, f"memories[{index}]"))
        for index, item in enumerate(items)
    ]


async def redacted_edit(edit: MemoryEdit, redact: Callable[[str], str]) -> MemoryEdit:
    """Raises `BadInput`."""
    return edit if edit.content is None else replace(edit, content=await _redacted(edit.content, redact, "content"))


async def _redacted(content: str, redact: Callable[[str], str], where: str) -> str:
    if len(content) > CONTENT_CHARACTERS_MAX:
        return content  # and it is refused for its length
    redacted = await run_offloaded(redact, content)
    if redacted != content and redacted.startswith("[withheld ") and PLACEHOLDER.fullmatch(redacted):
        raise BadInput(
            f"{where} holds a secret, and by the settings of memory.secrets nothing of such a text is stored"
        )
    return redacted


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
