"""Recorded turns with the arms in their receipts. Read a page at a time: the record of all users may be large."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import msgspec

from memory.adapters.sql.jobs import OnDatabase, reads
from memory.adapters.sql.statements import Connection, statements
from memory.adapters.turn_texts import to_text
from memory.chat.token_estimate import estimated_tokens
from memory.model import Receipt
from memory.model.arms import ARM, CORRECTIONS, NOTE_TOKENS, REPEATED_FACTS, Arm, ComparedTurn

SQL = statements("holdout_record")

PAGE_TURNS = 500
SESSION_BYTES = 12

_RECEIPT = msgspec.json.Decoder(Receipt)


class SqlHoldoutRecord(OnDatabase):
    """`memory.ports.holdouts.HoldoutRecord` in an open `SqlDatabase`, that of the turn log."""

    async def turns(self, *, since: float) -> AsyncIterator[ComparedTurn]:
        after = 0
        while page := await self._page(after=after, since=since):
            for _, turn in page:
                if turn is not None:
                    yield turn
            after = page[-1][0]

    @reads
    def _page(self, connection: Connection, *, after: int, since: float) -> list[tuple[int, ComparedTurn | None]]:
        """None for a turn whose receipt is gone."""
        rows = SQL.turns_with_receipts(connection, after=after, since=since, page_turns=PAGE_TURNS).fetchall()
        found: list[tuple[int, ComparedTurn | None]] = []
        for seq, user_id, session_id, said_at, answer, receipt_id in rows:
            receipt = SQL.body_of(connection, user_id=user_id, receipt_id=to_text(receipt_id)).fetchone()
            if receipt is None:
                found.append((seq, None))
                continue
            turn = _compared(user_id, session_id, said_at, to_text(answer), _RECEIPT.decode(receipt[0]))
            found.append((seq, turn))
        return found


def _compared(user_id: str, session_id: str, said_at: float, answer: str, receipt: Receipt) -> ComparedTurn:
    said, signs = receipt.signals, receipt.outcome
    session = f"{user_id}\x1f{session_id}".encode()
    return ComparedTurn(
        session=hashlib.blake2b(session, digest_size=SESSION_BYTES).hexdigest(),
        at=said_at,
        arm=Arm(said[ARM]) if said.get(ARM) in tuple(Arm) else None,
        note_tokens=int(said.get(NOTE_TOKENS, 0)),
        answer_tokens=estimated_tokens(answer) if answer else None,
        corrections=int(signs.get(CORRECTIONS, 0)),
        repeated_facts=int(signs.get(REPEATED_FACTS, 0)),
    )
