"""Asks the `memory_rewrite` model to rephrase the question, concurrently with the plain search and with a time limit.

A model that is down, late or returns junk costs a chat only the permitted wait; after a few failures in a row it is not
asked for `REST_SECONDS`. This module must never raise, and never log questions or answers.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

import structlog

from memory.errors import Unavailable
from memory.model import Conversation
from memory.ports import ChatModel
from memory.recall.query import (
    ANSWER_TOKENS,
    RewriteMode,
    Rewritten,
    read_rewrite,
    rewrite_messages,
    rewrite_schema,
    wants_rewrite,
)

IN_FLIGHT_MAX = 4  # concurrent calls: many vague questions must not take the model from the users who chat with it
FAILURES_MAX = 3  # in a row
# Pause after them: a model that is too slow now will be slow in a second, and each attempt costs a wait.
REST_SECONDS = 30.0

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """`seconds_max`: limit of one call, even where a request has more time left."""

    mode: RewriteMode = RewriteMode.VAGUE
    hyde: bool = False
    max_tokens: int = ANSWER_TOKENS
    seconds_max: float = 30.0


class NoRewrite(StrEnum):
    """Why there is no rewritten question; also the value in a receipt."""

    BUSY = "busy"  # the limit of concurrent calls is reached
    LATE = "late"
    NO_ANSWER = "no_answer"  # the model is down, or answered with an error
    USELESS = "useless"  # junk, or a query that shares no word with the chat


class Rewriter:
    """One per process. Call `wants` first; `rewrite` then calls the model."""

    def __init__(self, model: ChatModel, settings: RewriteSettings) -> None:
        self._model = model
        self._settings = settings
        self._in_flight = 0
        self._failures = 0
        self._rests_until = 0.0

    def wants(self, conversation: Conversation) -> bool:
        """Whether this question is worth a call, and the model is not paused."""
        if asyncio.get_running_loop().time() < self._rests_until:
            return False
        return wants_rewrite(conversation, self._settings.mode)

    async def rewrite(self, conversation: Conversation, *, seconds: float) -> Rewritten | NoRewrite:
        """The question as the model rephrases it, within `seconds` and the configured limit; or why there is none."""
        if self._in_flight >= IN_FLIGHT_MAX:
            return NoRewrite.BUSY
        hyde = self._settings.hyde
        seconds = min(seconds, self._settings.seconds_max)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + seconds
        self._in_flight += 1
        try:
            said = await self._model.complete(
                rewrite_messages(conversation, hyde=hyde),
                max_tokens=self._settings.max_tokens,
                schema=rewrite_schema(hyde=hyde),
                seconds=seconds,
            )
        except Unavailable as error:
            self._failed(str(error))
            return NoRewrite.LATE if loop.time() >= ends_at else NoRewrite.NO_ANSWER
        finally:
            self._in_flight -= 1
        rewritten = read_rewrite(said.text, conversation, hyde=hyde)
        if rewritten is None:
            self._failed("an answer that is of no use")
            return NoRewrite.USELESS
        self._failures = 0
        return rewritten

    def _failed(self, reason: str) -> None:
        self._failures += 1
        if self._failures >= FAILURES_MAX:
            self._failures = 0
            self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS
            log.warning("questions are not rewritten for a while", reason=reason, seconds=REST_SECONDS)
