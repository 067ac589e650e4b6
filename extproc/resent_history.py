"""What a request sends again of its conversation: where the turn continues, and what of it is still to be recorded.

A client may send its next message before the process that saw the previous one has stored it, so an unknown exchange is
looked up again before it is filled in. That happens in the background; no stream waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import structlog

from extproc.exchange import LeaveOut, OpenTurn
from extproc.large_bodies import Work
from extproc.turn_links import PATIENCE_SECONDS
from memory.errors import NotRecordable
from memory.model import ChainLink, SentConversation, SentExchange, Turn
from memory.ports import ConversationTrees, OptOuts
from memory.runtime.offload import run_each_offloaded
from memory.runtime.tracing import NO_TRACER, Tracer

log = structlog.get_logger(__name__)


def placed(turn: Turn, opening: OpenTurn, earlier: ChainLink | None) -> tuple[Turn, SentConversation]:
    """The turn in the session of the exchange that it names, and its conversation. `earlier`: that exchange, if known.

    With a conversation that the server stores, requests follow one another: only a named response is a point to
    continue from, which another request may continue from as well.
    """
    sent = opening.sent
    if earlier is None or not opening.session_from:
        return turn, sent
    turn = replace(turn, scope=replace(turn.scope, session_id=earlier.session_id))
    return turn, replace(sent, continues=earlier.turn_id, is_session_given=True)


@dataclass(frozen=True, slots=True)
class RecordingPolicy:
    """`redact` removes secrets from a text before it is stored. `fills_in`: missed turns are recorded when a client
    sends them again. Nothing of `opt_outs` is recorded. `tracer`: for spans around what is written.
    `early_seconds_max`: what a request may wait for its turn to be in the log, as long as for recall.
    """

    redact: Callable[[str], str]
    fills_in: bool = True
    tracer: Tracer = NO_TRACER
    opt_outs: OptOuts | None = None
    early_seconds_max: float = 0.12

    async def is_opted_out(self, user_id: str) -> bool:
        """Raises `Unavailable`."""
        return self.opt_outs is not None and await self.opt_outs.since(user_id) is not None


async def to_fill_in(
    trees: ConversationTrees, turn: Turn, sent: SentConversation, policy: RecordingPolicy
) -> SentConversation:
    """The conversation from its newest known exchange on. What may be filled in is redacted; the rest is only compared.
    Raises `Unavailable`.
    """
    if not sent.earlier or sent.continues:
        return replace(sent, earlier=())
    missing = 0
    for seconds in PATIENCE_SECONDS:
        await asyncio.sleep(seconds)
        missing = await trees.unknown(turn, sent)
        if not missing:
            break
    known = len(sent.earlier) - missing
    wanted = sent.earlier[known:] if policy.fills_in else ()
    are_known = await trees.known(turn.scope.user_id, wanted) if wanted else []
    redacted: list[SentExchange] = []
    for exchange, is_known in zip(wanted, are_known, strict=True):
        await asyncio.sleep(0)  # each short one takes a part of a millisecond of the loop
        left_out = replace(exchange, is_recordable=False)
        redacted.append(left_out if is_known else await _redacted(exchange, policy.redact))
    return replace(sent, earlier=(*sent.earlier[max(0, known - 1) : known], *redacted))


async def leave_out(trees: ConversationTrees, what: LeaveOut, policy: RecordingPolicy, work: Work) -> None:
    """`work`: around what takes long. Raises `Unavailable`."""
    with work():
        exchange = await _redacted(what.exchange, policy.redact)
    await trees.leave_out(what.user_id, exchange)


async def _redacted(exchange: SentExchange, redact: Callable[[str], str]) -> SentExchange:
    """Without secrets; without texts, if they cannot be searched for secrets."""
    try:
        *texts, answer = await run_each_offloaded(redact, [*(one.content for one in exchange.said), exchange.answer])
        said = tuple(replace(one, content=text) for one, text in zip(exchange.said, texts, strict=True))
        return replace(exchange, said=said, answer=answer)
    except NotRecordable as error:
        log.error("earlier_turn_not_recorded", error=str(error))
        return replace(exchange, said=(), answer="", is_recordable=False)
