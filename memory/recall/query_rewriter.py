"""Asks the `memory_rewrite` model for a better question, beside the plain search, and never for longer than it is told.

A model that is down, late or talking nonsense costs a chat nothing but the wait that was allowed; after a few such
answers in a row it is left alone for a while. It must never raise, and never log what was asked or answered.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum

import structlog

from memory.errors import Unavailable
from memory.model import Conversation
from memory.ports import ChatModel
from memory.recall.rewrite_prompt import (
    ANSWER_TOKENS,
    RewriteMode,
    Rewritten,
    read_rewrite,
    rewrite_messages,
    rewrite_schema,
    wants_rewrite,
)

IN_FLIGHT_MAX = 4  # a flood of vague questions must not take the model from those who chat with it
FAILURES_MAX = 3  # in a row
REST_SECONDS = 30.0  # then; a model that is too slow now will not be quick in a second, and each try costs a wait

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RewriteSettings:
    """`seconds_max`: of one call, wherever a request would leave it more."""

    mode: RewriteMode = RewriteMode.VAGUE
    hyde: bool = False
    max_tokens: int = ANSWER_TOKENS
    seconds_max: float = 30.0


class NoRewrite(StrEnum):
    """Why there is none; also what a receipt says."""

    BUSY = "busy"  # as many calls as we allow ourselves are under way
    LATE = "late"
    NO_ANSWER = "no_answer"  # the model is down, or answered with an error
    USELESS = "useless"  # junk, or a query that has nothing to do with the chat


class Rewriter:
    """One per process. Ask `wants` first; then `rewrite` calls the model."""

    def __init__(self, model: ChatModel, settings: RewriteSettings) -> None:
        self._model = model
        self._settings = settings
        self._in_flight = 0
        self._failures = 0
        self._rests_until = 0.0

    def wants(self, conversation: Conversation) -> bool:
        """Whether this question is worth a call, and the model fit for one."""
        if asyncio.get_running_loop().time() < self._rests_until:
            return False
        return wants_rewrite(conversation, self._settings.mode)

    async def rewrite(self, conversation: Conversation, *, seconds: float) -> Rewritten | NoRewrite:
        """The question as the model would ask it, within `seconds` and the setting's bound; or why there is none."""
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


__all__ = ["NoRewrite", "RewriteSettings", "Rewriter"]
