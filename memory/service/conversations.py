"""The conversation record for REST and command line: read, search, add, delete, trim, compress, resume.

Secrets are removed from added messages before anything is stored. Deleting a session, or a message of the user, also
forgets what is based on it, unless the caller asks to keep the memories.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass

from memory.errors import BadInput, NotFound, Unavailable
from memory.model import (
    MessageDirection,
    MessageFilter,
    Party,
    PartyType,
    RecordedMessage,
    Scope,
    Session,
    Visibility,
    is_valid_id,
)
from memory.model.recorded import ID_OF_TURN, TRACE_CHARACTERS_MAX, AbandonedBranch
from memory.ports import MemoryStore, Page, SessionSummaries, Trimming
from memory.ports.paging import all_pages
from memory.runtime.offload import run_offloaded
from memory.service.requests import time_said
from memory.service.service_parts import Service, ServiceParts

MESSAGES_PER_ADD_MAX = 200  # one transaction
MESSAGES_PER_PAGE_MAX = 500
SESSIONS_PER_PAGE_MAX = 100
KEEP_LAST_MAX = 100_000
COMPRESSED_CHARACTERS_MIN = 100  # the mark takes 40
COMPRESSED_CHARACTERS_MAX = 100_000
WORDS_MAX = 20
LOOKS_PER_SEARCH_MAX = 8  # pages examined for one call: 64 MiB of text; the cursor goes on from there
BRANCHES_PER_SESSION_MAX = 50  # the latest: of each, the first turn is read
RECEIPTS_PER_SESSION_MAX = 200  # the latest: each is read by its id


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to record. `at` (None: now). An empty `id` gets one; an empty name of a user is the caller's.

    `direction` (None): an input if it goes to an agent or a model, else an output.
    """

    source: Party
    target: Party
    content: str
    id: str = ""
    at: float | None = None
    direction: MessageDirection | None = None
    trace_id: str = ""
    visibility: Visibility = Visibility.USER


@dataclass(frozen=True, slots=True)
class GivenNote:
    """Memories that a turn of a session was given in a new note. `contents`: of those that still exist, by id."""

    turn_id: str
    receipt_id: str
    memory_ids: tuple[str, ...]
    contents: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SessionDeleted:
    """Counts of what was deleted; `kept_memories` have other evidence of the user."""

    turns: int
    messages: int
    memories: int
    kept_memories: int


class Conversations(Service):
    """Every call is about one user: sessions and messages of others look as if they did not exist."""

    def __init__(self, parts: ServiceParts) -> None:
        super().__init__(parts)
        self._record = parts.turn_log.messages
        self._receipts = parts.stores.receipts
        self._summaries = parts.stores.summaries
        self.sessions, self.summary = self._record.sessions, self._summaries.of_session

    async def add(self, scope: Scope, messages: Sequence[NewMessage]) -> list[str]:
        """Record messages of the conversation `scope.session_id`, which are not learnt from; their ids, in order. Known
        ids change nothing.
        """
        if not 1 <= len(messages) <= MESSAGES_PER_ADD_MAX:
            raise BadInput(f"expected 1 to {MESSAGES_PER_ADD_MAX} messages, got {len(messages)}; send several calls")
        if not scope.session_id:
            raise BadInput("the id of a conversation must not be empty")
        epoch, now = await self._writes.begin(scope.user_id), self._intake.clock()
        recorded = [await self._recorded(scope, index, message, now) for index, message in enumerate(messages)]
        async with self._writes.lock(epoch):
            await self._record.add(scope.user_id, recorded)
        return [message.id for message in recorded]

    async def _recorded(self, scope: Scope, index: int, message: NewMessage, now: float) -> RecordedMessage:
        try:
            if message.id and (not is_valid_id(message.id) or message.id.startswith(ID_OF_TURN)):
                raise BadInput(f"id must have 1-256 bytes without control characters, and not begin with {ID_OF_TURN}")
            if not message.content:
                raise BadInput("content must not be empty")
            target = _checked_party(message.target, scope)
            is_input = target.type in (PartyType.AGENT, PartyType.MODEL)
            return RecordedMessage(
                id=message.id or self._intake.new_id(),
                conversation_id=scope.session_id,
                source=_checked_party(message.source, scope),
                target=target,
                direction=message.direction or (MessageDirection.INPUT if is_input else MessageDirection.OUTPUT),
                content=await run_offloaded(self._intake.redact, message.content),
                at=time_said(message.at, now, "at"),
                trace_id=message.trace_id,
                project_id=scope.project_id,
                visibility=message.visibility,
            )
        except BadInput as error:
            raise BadInput(f"messages[{index}]: {error}", code=error.code) from error

    async def page(self, where: MessageFilter, *, limit: int, cursor: str = "") -> Page[RecordedMessage]:
        """One page in the order of the record. A rare word may need several pages, also empty ones, to be found."""
        if len(where.words) > WORDS_MAX:
            raise BadInput(f"a search may have {WORDS_MAX} words, got {len(where.words)}")
        if len(where.trace_id) > TRACE_CHARACTERS_MAX:
            raise BadInput(f"trace_id may have {TRACE_CHARACTERS_MAX} characters")
        found: list[RecordedMessage] = []
        for _ in range(LOOKS_PER_SEARCH_MAX):
            page = await self._record.page(where, limit=limit - len(found), cursor=cursor)
            found += page.items
            cursor = page.next_cursor
            if not cursor or found:  # a further page could hold megabytes more
                break
        return Page(tuple(found), cursor)

    async def conversation(self, where: MessageFilter, *, limit: int, cursor: str = "") -> Page[RecordedMessage]:
        """The same for one conversation. Raises `NotFound` if the user has none of that id."""
        page = await self.page(where, limit=limit, cursor=cursor)
        if not page.items:
            await self.session(where.user_id, where.conversation_id)
        return page

    async def export(self, where: MessageFilter) -> AsyncIterator[RecordedMessage]:
        """All messages, in the order of the record."""
        async for page in all_pages(lambda cursor: self.page(where, limit=MESSAGES_PER_PAGE_MAX, cursor=cursor)):
            for message in page.items:
                yield message

    async def session(self, user_id: str, conversation_id: str) -> Session:
        found = await self._record.session(user_id, conversation_id) if is_valid_id(conversation_id) else None
        if found is None:
            raise NotFound("there is no such session")
        return found

    async def abandoned(self, user_id: str, conversation_id: str) -> list[AbandonedBranch]:
        """The branches that the session has left: their messages stand in the record, but not in the live branch."""
        return await self._record.abandoned(user_id, conversation_id, limit=BRANCHES_PER_SESSION_MAX)

    async def is_open(self, user_id: str, session: Session) -> bool:
        """Whether a reply is under way, or the session has neither been idle until its end nor been ended."""
        if session.is_answering:
            return True
        if self._intake.clock() - session.last_at >= self._intake.session_end_seconds:
            return False
        return not (session.turns and await self._summaries.is_ended(user_id, session.id))

    async def end(self, user_id: str, conversation_id: str) -> None:
        """The session is over: its summary is due. The next turn opens it again."""
        await self.session(user_id, conversation_id)
        await self._summaries.end(user_id, conversation_id)

    async def notes_given(self, user_id: str, conversation_id: str) -> list[GivenNote]:
        """The new notes of the session's requests, as far as their receipts are kept, in the order of turns."""
        given: list[tuple[str, str, tuple[str, ...]]] = []
        ids = await self._record.receipt_ids(user_id, conversation_id, limit=RECEIPTS_PER_SESSION_MAX)
        for turn_id, receipt_id in ids:
            receipt = await self._receipts.get(user_id, receipt_id) if is_valid_id(receipt_id) else None
            new = [one for note in receipt.notes if note.is_new for one in note.memory_ids] if receipt else []
            if new:
                given.append((turn_id, receipt_id, tuple(dict.fromkeys(new))))
        contents = await noted_contents(
            self._store, self._summaries, user_id, {one for *_, memory_ids in given for one in memory_ids}
        )
        return [
            GivenNote(turn_id, receipt_id, memory_ids, {one: contents[one] for one in memory_ids if one in contents})
            for turn_id, receipt_id, memory_ids in given
        ]

    async def of_receipt(self, user_id: str, receipt_id: str) -> list[RecordedMessage]:
        """What was said in the turn with that receipt, and its answer. Raises `NotFound` if the record has none."""
        found = await self._record.of_receipt(user_id, receipt_id) if is_valid_id(receipt_id) else []
        if not found:
            raise NotFound("no recorded turn has this receipt")
        return found

    async def delete_session(
        self, user_id: str, conversation_id: str, *, keep_memories: bool = False
    ) -> SessionDeleted:
        """Delete the record of a session, and what was learnt from it alone. Turns not learnt yet are withdrawn.

        If it fails half way, it can be repeated: the record goes last.
        """
        await self.session(user_id, conversation_id)
        turn_ids = await self._record.turn_ids(user_id, conversation_id)
        await self._erasure.withdraw(user_id, turn_ids)
        gone = kept = 0
        if turn_ids and not keep_memories:
            forgotten = await self._erasure.sources(user_id, turn_ids)
            gone, kept = len(forgotten.forgotten), len(forgotten.kept)
        turns = await self._record.delete_turns(user_id, turn_ids)
        added = await self._record.delete_added(user_id, conversation_id)
        await self._erasure.drop_states(user_id)
        return SessionDeleted(turns, added, gone, kept)

    async def delete_message(self, user_id: str, message_id: str, *, keep_memories: bool = False) -> int:
        """Delete one message, and what rests on its turn alone if the user said it. Returns how many memories went."""
        message = await self._record.find(user_id, message_id)
        if message is None:
            raise NotFound("there is no such message")
        gone = 0
        if message.turn_id and message.source.type is PartyType.USER:
            await self._erasure.withdraw(user_id, [message.turn_id])
            if not keep_memories:
                gone = len((await self._erasure.sources(user_id, [message.turn_id])).forgotten)
        await self._record.delete_message(user_id, message_id)
        await self._erasure.drop_states(user_id)
        return gone

    async def trim(self, user_id: str, conversation_id: str, *, keep_last: int) -> int:
        """Delete all but the last messages of a conversation; memories stay. Returns the number of messages."""
        trimmed = await self._record.trim(await self._trimming(user_id, conversation_id, keep_last))
        await self._erasure.drop_states(user_id)
        return trimmed

    async def compress(self, user_id: str, conversation_id: str, *, keep_last: int, characters_max: int) -> int:
        """Shorten long outputs and tool results before the last messages, for good. Returns the number of messages."""
        if not COMPRESSED_CHARACTERS_MIN <= characters_max <= COMPRESSED_CHARACTERS_MAX:
            raise BadInput(
                f"characters_max must be from {COMPRESSED_CHARACTERS_MIN} to {COMPRESSED_CHARACTERS_MAX}; "
                f"got {characters_max}"
            )
        trimming = await self._trimming(user_id, conversation_id, keep_last)
        return await self._record.compress(trimming, characters_max=characters_max)

    async def _trimming(self, user_id: str, conversation_id: str, keep_last: int) -> Trimming:
        if not 0 <= keep_last <= KEEP_LAST_MAX:
            raise BadInput(f"keep_last must be from 0 to {KEEP_LAST_MAX}; got {keep_last}")
        await self.session(user_id, conversation_id)
        return Trimming(user_id, conversation_id, keep_last)


def _checked_party(party: Party, scope: Scope) -> Party:
    """With the caller's id for a user without a name. Raises `BadInput`."""
    if party.type is PartyType.USER:
        if party.name not in ("", scope.user_id):
            raise BadInput("a user who is source or target must be the caller")
        return Party(PartyType.USER, scope.user_id)
    if party.type is PartyType.AGENT and not is_valid_id(party.name):
        raise BadInput("an agent has an id of 1-256 bytes of UTF-8 without control characters")
    return party


async def noted_contents(
    store: MemoryStore, summaries: SessionSummaries, user_id: str, ids: Collection[str]
) -> dict[str, str]:
    """Of memories and current summaries, by id; of no memories while the store is down. Raises `Unavailable`."""
    try:
        records = await store.get(user_id, sorted(ids)) if ids else []
    except Unavailable:  # a note may be about this very outage, and messages can be shown all the same
        records = []
    current = await summaries.get(user_id, ids) if ids else []
    texts = {one.id: f"{one.title}: {one.text}" if one.text else one.title for one in current}
    return texts | {record.memory.id: record.memory.content for record in records}
