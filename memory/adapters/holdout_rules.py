"""What the holdout record says of a turn and its receipt, on every adapter."""

from __future__ import annotations

import hashlib

from memory.chat.token_estimate import estimated_tokens
from memory.model import Receipt
from memory.model.arms import ARM, CORRECTIONS, NOTE_TOKENS, REPEATED_FACTS, Arm, ComparedTurn

SESSION_BYTES = 12


def compared(session_id: str, said_at: float, answer: str, receipt: Receipt) -> ComparedTurn:
    said, signs = receipt.signals, receipt.outcome
    session = f"{receipt.user_id}\x1f{session_id}".encode()
    return ComparedTurn(
        session=hashlib.blake2b(session, digest_size=SESSION_BYTES).hexdigest(),
        at=said_at,
        arm=Arm(said[ARM]) if said.get(ARM) in tuple(Arm) else None,
        note_tokens=int(said.get(NOTE_TOKENS, 0)),
        answer_tokens=estimated_tokens(answer) if answer else None,
        corrections=int(signs.get(CORRECTIONS, 0)),
        repeated_facts=int(signs.get(REPEATED_FACTS, 0)),
    )
