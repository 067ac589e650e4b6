"""What of an exchange outlives it, so that the next request of its conversation finds its session, turn and notes.

| the exchange                          | is found again by                                                   |
|---------------------------------------|---------------------------------------------------------------------|
| a reply with an id (Responses)        | that id, when a client goes on from it                               |
| one of a conversation that is held    | the conversation's id                                                |
| a reply that calls the client's tools | also the key of the conversation up to the user's question          |

A client may go on before the other process that saw its last reply has written it down, so a name that is not known yet
is asked for again. Nobody waits for that: it happens beside the streams. This step must never take words from one
user's turn to another's: everything is kept and found by user.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from memory.model import ChainLink, TurnStatus
from memory.ports import ResponseChains, TurnRecording

PATIENCE_SECONDS = (0.0, 0.05, 0.15)  # before each look: less than a flush waits for turns that are on their way


@dataclass(frozen=True, slots=True)
class Links:
    """How an exchange hangs together with others. Names as `ResponseChains` has them, "" for none.

    `goes_on_from`: the exchange before it. `note_key`: where the note of this request is kept, if it has one. `names`:
    by which later requests may call this one.
    """

    user_id: str
    goes_on_from: str = ""
    note_key: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ContinueTurn:
    """A call of a tool loop is over: its answer, if there is one, belongs to the turn that the loop began with."""

    links: Links
    status: TurnStatus
    answer: str
    answered_at: float
    is_over_cap: bool = False


async def earlier_link(chains: ResponseChains, links: Links) -> ChainLink | None:
    """The exchange that this one goes on from; None where it is not known. Raises `Unavailable`."""
    if not links.goes_on_from:
        return None
    for seconds in PATIENCE_SECONDS:
        await asyncio.sleep(seconds)
        found = await chains.find(links.user_id, links.goes_on_from)
        if found is not None:
            return found
    return None


async def keep_link(chains: ResponseChains, links: Links, link: ChainLink, *, at: float) -> None:
    """Have later requests find this exchange, with the notes that its prompt held. Raises `Unavailable`."""
    if links.names:
        held = ChainLink(link.session_id, link.turn_id, link.followed_by(links.note_key))
        await chains.keep(links.user_id, links.names, held, at=at)


async def continue_turn(turn_log: TurnRecording, continuing: ContinueTurn, answer: str) -> bool:
    """Whether the turn was found. `answer` as it may be recorded. Raises `Unavailable`."""
    link = await earlier_link(turn_log.chains, continuing.links)
    if link is None:
        return False
    if answer:
        await turn_log.complete(link.turn_id, answer=answer, answered_at=continuing.answered_at)
    await keep_link(turn_log.chains, continuing.links, link, at=continuing.answered_at)
    return True
