"""Receipts in SQL, in the turn log's database: every process can read those of all filters.

Limited in age, in number per user, and in total bytes (`position` grows by the bytes of each receipt). Erasing a user's
receipts, or those of a project, leaves one marker row with the time, which has no body, so that receipts on their way
are not stored after it. Written in the background after the request; failures are not reported.

Pages go by `ordinal` for one user, by `position` for all: both grow with each receipt, and are the cursors.
Rows are decoded one after another until a page is full: what a note held stands in the body only.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import msgspec

from memory.adapters.pages import paged
from memory.adapters.sql.database import IN_PASSING_SECONDS, DatedOnDatabase, OnDatabase, SqlDatabase, reads, writes
from memory.adapters.sql.erased_users import was_erased_since
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.sql.turns_rows import to_text
from memory.chat.token_estimate import estimated_tokens
from memory.errors import BadInput
from memory.model import Receipt
from memory.model.arms import ARM, CORRECTIONS, NOTE_TOKENS, REPEATED_FACTS, Arm, ComparedTurn
from memory.model.outcomes import ASKED
from memory.ports import Clock, Page
from memory.settings import ReceiptSettings

SQL = statements("receipts")

NO_ID = ""  # not an id: marks when a user's receipts were erased
EXPIRED_AT_ONCE = 100  # deleted with one write, so that no writer waits for a backlog
READ_AT_ONCE = 100
USER_RECEIPTS_MAX = 1_000  # the newest, so that one busy user does not displace others' receipts
LAST = (1 << 63) - 1  # above every number that orders receipts

NO_OUTCOME = b'"outcome":{}'  # in the body of a receipt; in a text its quotes would be escaped

_RECEIPT = msgspec.json.Decoder(Receipt)
_DEFAULT = ReceiptSettings()


@dataclass(frozen=True, slots=True)
class ReceiptLimits:
    """How long receipts are kept, how many per user, and their total bytes."""

    seconds_max: float = _DEFAULT.keep_days * 86_400.0
    user_receipts_max: int = USER_RECEIPTS_MAX
    total_bytes_max: int = _DEFAULT.total_mib << 20


class SqlReceipts(DatedOnDatabase):
    def __init__(
        self, database: SqlDatabase, *, clock: Clock, redact: Callable[[str], str], limits: ReceiptLimits | None = None
    ) -> None:
        """`redact` removes secrets from the query before it is written; it runs in the writer's thread."""
        super().__init__(database, clock=clock)
        self._redact = redact
        self._limits = limits or ReceiptLimits()

    def keep(self, receipt: Receipt) -> None:
        self._database.post(partial(self._kept, receipt=receipt, expired=self._expired), within=IN_PASSING_SECONDS)

    @reads
    def get(self, connection: Connection, user_id: str, receipt_id: str) -> Receipt | None:
        if receipt_id == NO_ID:
            return None
        return SQL.unexpired_body.value(
            connection, _RECEIPT.decode, user_id=user_id, receipt_id=receipt_id, expired=self._expired
        )

    @reads
    def page(
        self,
        connection: Connection,
        user_id: str,
        *,
        memory_id: str = "",
        is_asked: bool = False,
        limit: int,
        cursor: str = "",
    ) -> Page[Receipt]:
        quoted = msgspec.json.encode(memory_id) if memory_id else b""  # tells cheaply that a body does not name it

        def bodies(before: int) -> Iterator[tuple[int, bytes]]:
            """Until there are no more, or nobody asks for more."""
            while rows := SQL.receipts_of_user(
                connection, user_id=user_id, before=before, expired=self._expired, limit=READ_AT_ONCE
            ).fetchall():
                yield from (row for row in rows if quoted in row[1] and not (is_asked and NO_OUTCOME in row[1]))
                before = rows[-1][0]

        def is_wanted(receipt: Receipt) -> bool:
            is_noted = not memory_id or any(memory_id in note.memory_ids for note in receipt.notes)
            return is_noted and not (is_asked and ASKED.isdisjoint(receipt.outcome))

        return _page(bodies(_before(cursor)), limit, is_wanted)

    @reads
    def page_of_all(self, connection: Connection, *, limit: int, cursor: str = "") -> Page[Receipt]:
        before = _before(cursor)
        rows = SQL.receipts_of_all(connection, before=before, expired=self._expired, limit=limit + 1).fetchall()
        return _page(rows, limit, lambda _: True)

    @writes
    def amend(self, connection: Connection, user_id: str, receipt_id: str, outcome: Mapping[str, Any]) -> None:
        """The additional bytes are not counted: a receipt is amended once, with a bounded list of ids."""
        row = SQL.body_of(connection, user_id=user_id, receipt_id=receipt_id).fetchone()
        if row is not None:
            body = msgspec.json.encode(replace(_RECEIPT.decode(row[0]), outcome=outcome))
            SQL.set_body(connection, body=body, user_id=user_id, receipt_id=receipt_id)

    @property
    def _expired(self) -> float:
        """Receipts before that time are none any more."""
        return self._clock() - self._limits.seconds_max

    @writes
    def erase(self, connection: Connection, user_id: str, *, project_id: str = "") -> None:
        now = self._clock()
        if not project_id:
            SQL.delete_receipts(connection, user_id=user_id)
            SQL.insert_mark(connection, user_id=user_id, no_id=NO_ID, now=now)
            return
        rows = SQL.bodies_of_user(connection, user_id=user_id)
        of_project = [position for position, body in rows if _RECEIPT.decode(body).project_id == project_id]
        SQL.delete_at.many(connection, [{"one": one} for one in of_project])
        mark = _project_mark(project_id)
        SQL.delete_receipt(connection, user_id=user_id, mark=mark)
        SQL.insert_project_mark(connection, user_id=user_id, mark=mark, now=now)

    def _kept(self, connection: Connection, *, receipt: Receipt, expired: float) -> None:
        project = _project_mark(receipt.project_id) if receipt.project_id else NO_ID
        is_erased = SQL.erased_later.exists(
            connection, user_id=receipt.user_id, mark=NO_ID, project_mark=project, at=receipt.at
        )
        if is_erased or was_erased_since(connection, receipt.user_id, receipt.at):
            return
        redact, said = self._redact, receipt.signals
        signals = {name: redact(value) if isinstance(value, str) else value for name, value in said.items()}
        body = msgspec.json.encode(replace(receipt, query=redact(receipt.query), signals=signals))
        position, ordinal = SQL.last_positions(connection, user_id=receipt.user_id).fetchone()
        position, ordinal = (position or 0) + len(body), (ordinal or 0) + 1
        SQL.insert_receipt(
            connection,
            position=position,
            user_id=receipt.user_id,
            ordinal=ordinal,
            id=receipt.id,
            at=receipt.at,
            body=body,
        )
        SQL.delete_up_to(connection, position=position - self._limits.total_bytes_max)
        SQL.delete_of_user_up_to(connection, user_id=receipt.user_id, ordinal=ordinal - self._limits.user_receipts_max)
        SQL.delete_expired(connection, expired=expired, expired_at_once=EXPIRED_AT_ONCE)


def _project_mark(project_id: str) -> str:
    """Names a project whose receipts were erased: by a digest, since the name has gone with them. It is no id."""
    return f" project/{hashlib.sha256(project_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _before(cursor: str) -> int:
    """The number that a page stays below. Raises `BadInput`."""
    if not cursor:
        return LAST
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < len(str(LAST))):
        raise BadInput("cursor must be the next_cursor of the page before")
    return int(cursor)


def _page(rows: Iterable[tuple[int, bytes]], limit: int, is_wanted: Callable[[Receipt], bool]) -> Page[Receipt]:
    decoded = ((number, _RECEIPT.decode(body)) for number, body in rows)
    found = list(itertools.islice(((number, one) for number, one in decoded if is_wanted(one)), limit + 1))
    shown = found[:limit]
    return Page(tuple(one for _, one in shown), str(shown[-1][0]) if len(found) > limit else "")


PAGE_TURNS = 500


class SqlHoldoutRecord(OnDatabase):
    """Recorded turns with the arms in their receipts. Read a page at a time: the record of all users may be large."""

    async def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        async for turn in paged(partial(self._page, since), size=PAGE_TURNS):
            if turn is not None:
                yield turn

    @reads
    def _page(self, connection: Connection, since: float, after: int) -> list[tuple[int, ComparedTurn | None]]:
        """None for a turn whose receipt is gone."""
        rows = SQL.turns_with_receipts(connection, after=after, since=since, page_turns=PAGE_TURNS).fetchall()
        found: list[tuple[int, ComparedTurn | None]] = []
        for seq, user_id, session_id, said_at, answer, receipt_id in rows:
            left = SQL.body_left.value(connection, _RECEIPT.decode, user_id=user_id, receipt_id=to_text(receipt_id))
            turn = None if left is None else _compared(user_id, session_id, said_at, to_text(answer), left)
            found.append((seq, turn))
        return found


def _compared(user_id: str, session_id: str, said_at: float, answer: str, receipt: Receipt) -> ComparedTurn:
    said, signs = receipt.signals, receipt.outcome
    session = f"{user_id}\x1f{session_id}".encode()
    return ComparedTurn(
        session=hashlib.blake2b(session, digest_size=12).hexdigest(),
        at=said_at,
        arm=Arm(said[ARM]) if said.get(ARM) in tuple(Arm) else None,
        note_tokens=int(said.get(NOTE_TOKENS, 0)),
        answer_tokens=estimated_tokens(answer) if answer else None,
        corrections=int(signs.get(CORRECTIONS, 0)),
        repeated_facts=int(signs.get(REPEATED_FACTS, 0)),
    )
