"""Exports what is known of a user as JSON lines, and imports it into this or another system.

The first line says what the file is. Each further line has a `kind`: `profile`, with what the user decided about a
profile (lines from memories are built again); `shared_memory`, with what is shared in a project; `memory`,
whatever its status, with its id, times, claim and evidence; and of the conversation record `turn`, `due` (a turn that
is to be learnt: behind all turns, so that no worker learns it before what was ordered since is there), `message` and
`raw_words`. Vectors and summaries are made again by the system that imports. Lines of other kinds, and of shared
memories, are counted and not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec

from memory.errors import BadInput, MemoryRefused
from memory.model import (
    Change,
    ChangeKind,
    Memory,
    MemoryStatus,
    Party,
    PartyType,
    RecordedMessage,
    Scope,
    TurnStatus,
    is_valid_id,
)
from memory.model.raw_words import embedded_text, raw_row_ids
from memory.model.recorded import ID_OF_TURN
from memory.model.turns import Learning, TurnCopy
from memory.model.wordings import plain_metadata_of, with_wordings, wordings_of
from memory.ports import LedgerWrite, MemoryFilter
from memory.service import imported_ids
from memory.service.locked_writes import write_rows
from memory.service.memory_scan import scanned
from memory.service.profiles import OwnProfile, ProfileService
from memory.service.requests import checked_metadata
from memory.service.service_parts import Service, ServiceParts
from memory.service.shared_projects import SharedProjects
from memory.service.user_writes import EraseEpoch, OptedOut
from memory.typed import from_json

PAGE = 200  # memories embedded and written at a time
UNREAD_KINDS_MAX = 20  # of a later release; a file with more of them is something else
LINE_BYTES_MAX = 16 << 20  # a turn has up to 2 MiB of text, which JSON may write with six bytes for one

_Line = TypeVar("_Line", bound=msgspec.Struct)


class ExportedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="turn"):
    copy: TurnCopy


class ExportedDue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="due"):
    turn_id: str


class ExportedMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="message"):
    """Tool traffic, or a message that an application added."""

    message: RecordedMessage


class ExportedRawWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="raw_words"):
    """A row with what the user said in a turn, as said."""

    row: Memory


def checked_turn(copy: TurnCopy) -> TurnCopy:
    """Raises `BadInput`."""
    turn, scope = copy.turn, copy.turn.scope
    ids = (turn.id, *(one for one in (scope.project_id, scope.session_id, scope.agent_id) if one))
    if not all(map(is_valid_id, ids)) or turn.status is TurnStatus.OPENED:
        raise BadInput("a turn has ended, and its ids have 1-256 bytes of UTF-8 without control characters")
    return copy


def checked_message(message: RecordedMessage, user_id: str) -> RecordedMessage:
    """The message as the caller's own. Raises `BadInput`."""
    ids = (message.id, message.conversation_id, *(one for one in (message.project_id, message.turn_id) if one))
    own = f"{ID_OF_TURN}{message.turn_id}:"
    is_named = message.id.startswith(own) if message.turn_id else not message.id.startswith(ID_OF_TURN)
    if not all(map(is_valid_id, ids)) or not is_named:
        raise BadInput(f"the id of a message begins with {ID_OF_TURN} and its turn's id if, and only if, it has one")
    return replace(message, source=_own(message.source, user_id), target=_own(message.target, user_id))


def checked_raw_words(row: Memory, user_id: str, *, of_user: str) -> Memory:
    """The row as the caller's own. Its id follows from user and turn, by which it is found when these are forgotten."""
    turn_id = row.evidence[0].turn_id if row.evidence else ""
    known = raw_row_ids(of_user, turn_id)
    if row.status is not MemoryStatus.RAW or not turn_id or row.id not in known:
        raise BadInput("raw words have the status raw, and an id that follows from their user and turn")
    return replace(row, user_id=user_id, id=raw_row_ids(user_id, turn_id)[known.index(row.id)])


def _own(party: Party, user_id: str) -> Party:
    return Party(PartyType.USER, user_id) if party.type is PartyType.USER else party


class ExportHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="memproxy-export"):
    """The first line. `user_id`: whose memories these were; whoever imports them owns the copies."""

    user_id: str
    version: Literal[1] = 1


class ExportedMemory(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="memory"):
    memory: Memory


class ExportedShared(msgspec.Struct, frozen=True, tag_field="kind", tag="shared_memory"):
    """A memory that the user shared in a project, or in the export of one project another member: then as the user may
    see it. It is not read back: it stands where it was shared.
    """

    memory: Memory


class _AnyLine(msgspec.Struct, frozen=True):
    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


_SingleLine: TypeAlias = OwnProfile | ExportedTurn | ExportedDue | ExportedMessage | _AnyLine
_RecordLine: TypeAlias = ExportedTurn | ExportedDue | ExportedMessage | ExportedRawWords
_SINGLE: Mapping[str, type[_SingleLine]] = {
    "profile": OwnProfile,
    "turn": ExportedTurn,
    "due": ExportedDue,
    "message": ExportedMessage,
}


@dataclass(slots=True)
class Imported:
    """Counts, which grow while lines are stored: memories that were stored; `present` were there already and stayed as
    they are; `forgotten` were deleted here before. `profiles` were set, of those that the user had not set here;
    `turns`, `messages` and rows of `raw_words` were stored. `unread`: lines of kinds that are not read.
    """

    stored: int = 0
    present: int = 0
    forgotten: int = 0
    profiles: int = 0
    turns: int = 0
    messages: int = 0
    raw_words: int = 0
    unread: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.stored} were stored, {self.present} were there already and {self.forgotten} stay forgotten"


class MemoryTransfers(Service):
    """Methods raise `BadInput`, `Unavailable` or `Conflict`; an import may be repeated safely."""

    def __init__(self, parts: ServiceParts, profiles: ProfileService, projects: SharedProjects) -> None:
        super().__init__(parts)
        self._record = parts.turn_log.copies
        self._profiles = profiles
        self._shared = projects.rows
        self._projects = projects.memories

    async def export(self, user_id: str, *, project_id: str = "", has_record: bool = True) -> AsyncIterator[bytes]:
        """The lines, each with its end: profiles, what the user shared in projects, memories, the newest first, and the
        conversation record if asked.

        With a project: what is in exactly that one, and as a member of it what others share there. Memories come first,
        so that turns which the next system has yet to learn find them.
        """
        Scope(user_id, project_id)  # refuses invalid ids
        yield msgspec.json.encode(ExportHeader(user_id)) + b"\n"
        for own in await self._profiles.own(user_id):
            if project_id in ("", own.project_id):
                yield msgspec.json.encode(own) + b"\n"
        for shared in await self._shared.authored(user_id):
            if project_id in ("", shared.project_id):
                yield msgspec.json.encode(ExportedShared(shared)) + b"\n"
        if project_id:
            async for shared in self._projects.shared_by_others(user_id, project_id):
                yield msgspec.json.encode(ExportedShared(shared)) + b"\n"
        async for memory in self._rows(user_id, project_id, None):
            yield msgspec.json.encode(ExportedMemory(memory)) + b"\n"
        if has_record:
            async for line in self._recorded(user_id, project_id):
                yield msgspec.json.encode(line) + b"\n"

    async def _recorded(self, user_id: str, project_id: str) -> AsyncIterator[_RecordLine]:
        due: list[str] = []
        async for copy in self._record.turns(user_id):
            if project_id in ("", copy.turn.scope.project_id):
                if is_due := copy.learning is Learning.DUE:
                    due.append(copy.turn.id)
                yield ExportedTurn(replace(copy, is_held=is_due))
        for turn_id in due:
            yield ExportedDue(turn_id)
        async for message in self._record.messages(user_id):
            if project_id in ("", message.project_id):
                yield ExportedMessage(message)
        async for row in self._rows(user_id, project_id, MemoryStatus.RAW):
            yield ExportedRawWords(row)

    async def _rows(self, user_id: str, project_id: str, status: MemoryStatus | None) -> AsyncIterator[Memory]:
        where = MemoryFilter(user_id, project_id, status=status, exact_project=bool(project_id))
        async for memories in scanned(self._store, where):
            for memory in memories:
                yield memory

    async def load(self, user_id: str, lines: AsyncIterator[bytes], *, first_line: int = 2) -> Imported:
        """Stores what `export` wrote. Raises `BadInput` with the number of a line that cannot be read or stored, and
        the counts of what is stored by then: the batches before its own.

        `first_line`: the number of the line after the header, of a file that is sent in several calls.
        """
        epoch = await self._writes.begin(user_id)
        batches, counts = _Batches(first_line), Imported()
        try:
            async for part in batches.of(lines, user_id):
                match part:
                    case _AnyLine(kind):
                        counts.unread[kind] += 1
                        if len(counts.unread) > UNREAD_KINDS_MAX:
                            raise BadInput(
                                f"more than {UNREAD_KINDS_MAX} kinds of lines are unknown: this is no export of ours"
                            )
                    case list():
                        await self._store_all(epoch, part, counts)
                    case _:
                        async with self._writes.lock(epoch):
                            await self._store_one(user_id, part, counts)
        except OptedOut:
            raise
        except BadInput as error:
            number = batches.number_of(error)
            where = "" if number is None else f"line {number}: "
            raise BadInput(f"{where}{error}. Of this call's lines before, {counts}", code=error.code) from None
        return counts

    async def _store_one(
        self, user_id: str, part: OwnProfile | ExportedTurn | ExportedDue | ExportedMessage, counts: Imported
    ) -> None:
        match part:
            case OwnProfile():
                counts.profiles += await self._profiles.take_over(user_id, part)
            case ExportedTurn(copy):
                counts.turns += await self._record.add_turns(user_id, [checked_turn(copy)])
            case ExportedDue(turn_id):
                if not is_valid_id(turn_id):
                    raise BadInput("the id of a turn has 1-256 bytes of UTF-8 without control characters")
                await self._record.release(user_id, [turn_id])
            case ExportedMessage(message):
                counts.messages += await self._record.add_messages(user_id, [checked_message(message, user_id)])

    async def _store_all(self, epoch: EraseEpoch, given: Sequence[Memory], counts: Imported) -> None:
        user_id = epoch.user_id
        memories = list({memory.id: memory for memory in given}.values())
        if not memories:
            return
        vectors = await self._embedder.embed(list(map(embedded_text, memories)), is_urgent=False)
        async with self._writes.lock(epoch) as held:
            here = await self._with_turns(user_id, held, memories)
            possible = imported_ids.possible_ids(user_id, here)
            stored = {memory.id for memory in await self._store.memories(user_id, possible)}
            forgotten = await held.forgotten(possible) - stored
            rows = [imported_ids.renamed(user_id, one, own=stored | forgotten) for one in here]
            kept = [index for index, row in enumerate(rows) if row.id not in stored | forgotten]
            changes = [Change(ChangeKind.CREATE, rows[index]) for index in kept]
            try:
                await write_rows(self._store, held, user_id, changes, vectors[kept])
            except MemoryRefused as error:
                in_file = {row.id: memory.id for row, memory in zip(rows, memories, strict=True)}
                raise MemoryRefused(str(error), memory_id=in_file[error.memory_id], code=error.code) from None
        raw = {row.id for row in rows if row.status is MemoryStatus.RAW}
        written = {rows[index].id for index in kept}
        present = {row.id for row in rows} & stored
        gone = {row.id for row in rows} - written - present
        counts.stored += len(written - raw)
        counts.present += len(present - raw)
        counts.forgotten += len(gone - raw)
        counts.raw_words += len(written & raw)

    async def _with_turns(self, user_id: str, held: LedgerWrite, memories: Sequence[Memory]) -> list[Memory]:
        """The memories with their turns as this record calls them, also those that were deleted in it."""
        turn_ids = set[str]().union(*map(imported_ids.turn_ids, memories))
        own = await self._record.own_turns(user_id, turn_ids) | await held.forgotten(turn_ids)
        return [imported_ids.with_turns(user_id, memory, own=own) for memory in memories]


class _Batches:
    """What a file holds: memories in batches, and other lines one by one."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line
        self._numbers: dict[str, int] = {}  # lines of the memories of this batch, by id
        self._other: int | None = None  # the line that is handled by itself

    async def of(self, lines: AsyncIterator[bytes], user_id: str) -> AsyncIterator[list[Memory] | _SingleLine]:
        number, waiting, of_user = 0, list[Memory](), ""
        async for line in lines:
            if not number:
                of_user = _read(line, ExportHeader, 1).user_id
                number = self._first_line - 1
                continue
            number += 1
            if not line.strip():
                continue
            match _read(line, _AnyLine, number).kind:
                case "memory":
                    memory = _checked(_read(line, ExportedMemory, number).memory, user_id, number)
                    self._numbers[memory.id] = number
                    waiting.append(memory)
                case "raw_words":
                    row = _read(line, ExportedRawWords, number).row
                    self._other = number
                    waiting.append(checked_raw_words(row, user_id, of_user=of_user))
                    self._numbers[waiting[-1].id] = number
                    self._other = None
                case kind:
                    if kind == "turn" and waiting:  # memories first, so that whoever learns the turn finds them
                        yield waiting
                        waiting, self._numbers = [], {}
                    single = _read(line, _SINGLE.get(kind, _AnyLine), number)
                    self._other = number
                    yield single
                    self._other = None
            if len(waiting) == PAGE:
                yield waiting
                waiting, self._numbers = [], {}
        if not number:
            raise BadInput("the file is empty: it must begin with the line that an export begins with")
        yield waiting

    def number_of(self, error: BadInput) -> int | None:
        """The line that was refused when it was to be stored; None if the message names it."""
        return self._numbers.get(error.memory_id) if isinstance(error, MemoryRefused) else self._other


def _read(line: bytes, kind: type[_Line], number: int) -> _Line:
    try:
        return from_json(line, kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadInput(f"line {number} is not one of an export: {error}") from None
    except BadInput as error:
        raise BadInput(f"line {number}: {error}", code=error.code) from None


def _checked(memory: Memory, user_id: str, number: int) -> Memory:
    """The memory as the caller's own."""
    scope = (memory.project_id, memory.session_id, memory.agent_id, memory.superseded_by)
    if not is_valid_id(memory.id) or not all(is_valid_id(one) for one in scope if one):
        raise BadInput(f"line {number} has an id that cannot be: 1-256 bytes of UTF-8 without control characters")
    if memory.status is MemoryStatus.RAW:
        raise BadInput(f"line {number} holds raw words of a turn, which an export never does")
    checked_metadata(plain_metadata_of(memory))
    return with_wordings(replace(memory, user_id=user_id), wordings_of(memory))
