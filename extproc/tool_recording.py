"""Prepares tool calls and results for the conversation record: without secrets, and cut.

A cut text ends well before the place where it was cut first, so that it holds no part of a secret that was too long to
be recognised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import structlog

from memory.chat.tool_traffic import CONTENT_CHARACTERS_MAX
from memory.errors import NotRecordable
from memory.model import ToolMessage
from memory.runtime.offload import run_offloaded

STORED_CHARACTERS_MAX = 4_000  # of one call or result; finding secrets in more would take the time of chats

CUT = " … [cut]"  # the end of a text that was longer

_KEY_BEGINS = "-----BEGIN"  # of a private key, which may be longer than what is looked through

log = structlog.get_logger(__name__)


async def without_secrets(tools: Sequence[ToolMessage], redact: Callable[[str], str]) -> tuple[ToolMessage, ...]:
    """Those that can be recorded."""
    recordable = []
    for tool in tools:
        try:
            content = await run_offloaded(redact, tool.content)
            name = await run_offloaded(redact, tool.name)
        except NotRecordable as error:
            log.error("tool_message_not_recorded", error=str(error))
            continue
        if len(tool.content) >= CONTENT_CHARACTERS_MAX:
            head = content[: -(CONTENT_CHARACTERS_MAX - STORED_CHARACTERS_MAX)].partition(_KEY_BEGINS)[0]
            content = head[: STORED_CHARACTERS_MAX - len(CUT)] + CUT
        recordable.append(replace(tool, name=name, content=content[:STORED_CHARACTERS_MAX]))
    return tuple(recordable)
