"""Stores links between exchanges, by which the next request of a conversation finds its session, turn and notes.

| the exchange                          | is found by                                                |
|---------------------------------------|------------------------------------------------------------|
| a reply with an id (Responses)        | that id, when a request continues it                       |
| part of a stored conversation         | the conversation's id                                      |
| a reply that calls the client's tools | also the key of the conversation up to the user's question |

An exchange that is not recorded has a link as well, with ids only, so that the conversation stays one session.

A client may continue before the process that saw the last reply has stored its link, so an unknown name is looked up
again. That happens in the background; no stream waits. Links are stored and found per user, so that text never moves
from one user's turn to another's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from memory.model import ChainLink, ToolMessage, TurnStatus
from memory.ports import ResponseChains, TurnRecording

PATIENCE_SECONDS = (0.0, 0.05, 0.15)  # before each lookup: in total less than a flush waits for pending turns
LOOP_PATIENCE_SECONDS = (*PATIENCE_SECONDS, 0.4, 1.0)  # likewise, where no turn has to be opened


@dataclass(frozen=True, slots=True)
class Links:
    """The links of an exchange to others. Names as in `ResponseChains`, "" for none.

    `goes_on_from`: the exchange that it continues. `note_keys`: the keys of the notes in this request. `names`: the
    names by which later requests can find this exchange.
    """

    user_id: str
    goes_on_from: str = ""
    note_keys: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinueTurn:
    """A call of a tool loop has ended: its answer, if any, belongs to the turn that started the loop.

    `tools`: the calls and results that the request brought, at `asked_at`.
    """

    links: Links
    status: TurnStatus
    answer: str
    answered_at: float
    is_over_cap: bool = False
    tools: tuple[ToolMessage, ...] = ()
    asked_at: float = 0.0


@dataclass(frozen=True, slots=True)
class LinkExchange:
    """An exchange that is not recorded has ended: later requests find its session and notes, and nothing else of it.

    `session_id`: unless the exchange that it continues has another one and `is_session_derived`.
    """

    links: Links
    session_id: str
    is_session_derived: bool
    answered_at: float


async def earlier_link(
    chains: ResponseChains, links: Links, *, patience: Sequence[float] = PATIENCE_SECONDS
) -> ChainLink | None:
    """The exchange that this one continues, or None if it is unknown. Raises `Unavailable`."""
    if not links.goes_on_from:
        return None
    for seconds in patience:
        await asyncio.sleep(seconds)
        found = await chains.find(links.user_id, links.goes_on_from)
        if found is not None:
            return found
    return None


async def keep_link(chains: ResponseChains, links: Links, link: ChainLink, *, at: float) -> None:
    """Store the link by which later requests find this exchange and its notes. Raises `Unavailable`."""
    if links.names:
        held = ChainLink(link.session_id, link.turn_id, link.followed_by(*links.note_keys))
        await chains.keep(links.user_id, links.names, held, at=at)


async def continue_turn(turn_log: TurnRecording, continuing: ContinueTurn, answer: str) -> bool:
    """Returns whether the turn was found. `answer` and the tools: already redacted. Raises `Unavailable`."""
    link = await earlier_link(turn_log.chains, continuing.links, patience=LOOP_PATIENCE_SECONDS)
    if link is None:
        return False
    if continuing.tools and link.turn_id:
        await turn_log.messages.add_tool_messages(link.turn_id, continuing.tools, at=continuing.asked_at)
    if answer and link.turn_id:
        await turn_log.complete(link.turn_id, answer=answer, answered_at=continuing.answered_at)
    await keep_link(turn_log.chains, continuing.links, link, at=continuing.answered_at)
    return True


async def link_exchange(chains: ResponseChains, exchange: LinkExchange) -> None:
    """Store the link of an exchange that is not recorded. Raises `Unavailable`."""
    earlier = await earlier_link(chains, exchange.links)
    is_continued = earlier is not None and exchange.is_session_derived
    session_id = earlier.session_id if earlier is not None and is_continued else exchange.session_id
    link = ChainLink(session_id, "", earlier.note_keys if earlier is not None else ())
    await keep_link(chains, exchange.links, link, at=exchange.answered_at)
