"""Makers and readers of messages of the conversation record."""

from __future__ import annotations

from turn_logs import START, windows

from memory.model import MessageDirection, MessageFilter, Party, PartyType, RecordedMessage, Visibility
from memory.ports import RecordedMessages, TurnLog
from memory.ports.paging import all_pages

ADA, AGENT, OTHER = Party(PartyType.USER, "ann"), Party(PartyType.AGENT, "planner"), Party(PartyType.AGENT, "critic")


def added(
    message_id: str,
    content: str = "",
    *,
    at: float = START,
    source: Party = AGENT,
    target: Party = OTHER,
    session: str = "s1",
    visibility: Visibility = Visibility.USER,
) -> RecordedMessage:
    direction = MessageDirection.INPUT
    return RecordedMessage(
        message_id, session, source, target, direction, content or f"text of {message_id}", at, visibility=visibility
    )


async def all_of(record: RecordedMessages, where: MessageFilter, *, limit: int = 100) -> list[RecordedMessage]:
    found: list[RecordedMessage] = []
    async for page in all_pages(lambda cursor: record.page(where, limit=limit, cursor=cursor)):
        assert len(page.items) <= limit
        found += page.items
    return found


async def texts(log: TurnLog, where: MessageFilter | None = None, *, limit: int = 100) -> list[str]:
    return [message.content for message in await all_of(log.messages, where or MessageFilter("ann"), limit=limit)]


async def learn_all(log: TurnLog) -> None:
    await windows(log, START + 100)
