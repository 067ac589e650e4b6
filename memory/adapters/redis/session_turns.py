"""The recorded turns that are, or may become, part of a summary, on Redis."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence

from memory.adapters.redis.log_client import LogClient
from memory.adapters.redis.log_keys import UserKeys
from memory.adapters.redis.turn_records import TurnRecord, read_command, record_of
from memory.adapters.turn_rules import SUMMARISED_BYTES_MAX, SUMMARISED_TURN_BYTES_MAX, TAUGHT
from memory.adapters.turn_texts import messages_of
from memory.model import Role, SaidTurn, Turn

PAGE_TURNS = 50  # read at a time from the record; a turn may have 2 MiB


class SessionTurns:
    """Reads only."""

    def __init__(self, client: LogClient) -> None:
        self._client = client

    async def learnt(self, user_id: str, session_id: str, *, limit: int) -> list[Turn]:
        """The session's last ones, oldest first."""
        keys = UserKeys(user_id)
        found: list[Turn] = []
        room = SUMMARISED_BYTES_MAX
        async for record in self._of_index(keys, keys.session(session_id), newest_first=True):
            if record.stage != "learnt" or record.status not in TAUGHT:
                continue
            room -= _size(record)
            if len(found) == limit or (found and room < 0):
                break
            found.append(record.turn())
        return found[::-1]

    async def said(self, user_id: str, *, project_id: str, until: float, after: int, limit: int) -> list[SaidTurn]:
        """Also turns that are not learnt yet, and abandoned ones, which can be resumed."""
        keys = UserKeys(user_id)
        found: list[SaidTurn] = []
        async for record in self._of_index(keys, keys.turns, after=f"({after}"):
            if len(found) == limit:
                break
            if record.stage in ("nothing", "withdrawn") or not _is_said(record, project_id, until):
                continue
            messages = messages_of(record.beginning.messages)
            said = tuple(one.content for one in messages if one.role == Role.USER)
            found.append(SaidTurn(record.seq, record.beginning.id, said))
        return found

    async def said_until(self, user_id: str, *, project_id: str, until: float) -> AsyncIterator[dict[str, str]]:
        """The sessions of all turns said by that time, by turn, some at a time."""
        keys = UserKeys(user_id)
        async for page in self._pages(keys, keys.turns):
            yield {one.beginning.id: one.beginning.session_id for one in page if _is_said(one, project_id, until)}

    async def sessions_of(self, user_id: str, turn_ids: Collection[str]) -> AsyncIterator[dict[str, str]]:
        """The sessions of these turns, by turn, some at a time, without unknown ones."""
        keys, asked = UserKeys(user_id), list(turn_ids)
        for start in range(0, len(asked), PAGE_TURNS):
            records = await self._records(keys, asked[start : start + PAGE_TURNS])
            yield {one.beginning.id: one.beginning.session_id for one in records}

    async def _of_index(
        self, keys: UserKeys, index: str, *, newest_first: bool = False, after: str = "-inf"
    ) -> AsyncIterator[TurnRecord]:
        """Those that may be part of a summary."""
        async for page in self._pages(keys, index, newest_first=newest_first, after=after):
            ids = [record.beginning.id for record in page]
            left_out = await self._client.call("SMISMEMBER", keys.in_no_summary, *ids) if ids else []
            for record, is_left_out in zip(page, left_out, strict=True):
                if not is_left_out and record.claims is None and _size(record) <= SUMMARISED_TURN_BYTES_MAX:
                    yield record

    async def _pages(
        self, keys: UserKeys, index: str, *, newest_first: bool = False, after: str = "-inf"
    ) -> AsyncIterator[list[TurnRecord]]:
        """`after`: a place in the order of recording, as Redis writes it."""
        place = "+inf" if newest_first else after
        while True:
            span = (place, "-inf", "BYSCORE", "REV") if newest_first else (place, "+inf", "BYSCORE")
            ids = await self._client.call("ZRANGE", index, *span, "LIMIT", 0, PAGE_TURNS)
            page = await self._records(keys, [turn_id.decode() for turn_id in ids])
            yield page
            if len(ids) < PAGE_TURNS or not page:
                return
            place = f"({page[-1].seq}"

    async def _records(self, keys: UserKeys, turn_ids: Sequence[str]) -> list[TurnRecord]:
        """In that order, without those that were deleted meanwhile."""
        replies = await self._client.calls([read_command(keys, turn_id) for turn_id in turn_ids])
        return [record for reply in replies if (record := record_of(reply)) is not None]


def _size(record: TurnRecord) -> int:
    return len(record.beginning.messages) + len(record.end.answer)


def _is_said(record: TurnRecord, project_id: str, until: float) -> bool:
    return project_id in ("", record.beginning.project_id) and record.beginning.said_at <= until
