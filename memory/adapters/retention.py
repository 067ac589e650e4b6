"""How much is kept of what serves later requests, on every adapter: notes, receipts, links of chains, states, calls."""

from __future__ import annotations

from dataclasses import dataclass

from memory.settings import NoteSettings, ReceiptSettings

DAY = 86_400.0

NOTE_BYTES_MAX = 64 << 10  # 1,600 tokens are 8 KB of prose; a larger note consists of endless words
NOTE_KEYS_ASKED_MAX = 2_000  # of one lookup: longer conversations keep their latest notes
NOTE_DROP_SECONDS = 60.0  # longer than any request, and any wait for a lock

USER_LINKS_MAX = 2_000
LINKS_MAX = 200_000  # of all users; about 200 bytes each, a KB with many notes
LINK_SECONDS_MAX = 30 * DAY  # as long as servers keep responses

USER_STATES_MAX = 100  # some conversations at a time, and several states of each
STATES_MAX = 20_000  # of all users; a few KB each
STATE_BYTES_MAX = 64 << 10  # a larger one is not stored: it could not be short
STATE_SECONDS_MAX = 30 * DAY
STATE_DROP_SECONDS = 3_600.0  # longer than any state is in the making
STATE_KEYS_ASKED_MAX = 2_000  # of one lookup

CALL_SECONDS = DAY  # of an idempotency key: far longer than any client goes on repeating a call
USER_CALLS_MAX = 10_000

USER_NOTE_BYTES_MAX = 4 << 20  # about a hundred long conversations; a lost note costs a prefix-cache hit, no answer
USER_RECEIPTS_MAX = 1_000  # the newest, so that one busy user does not displace others' receipts

_NOTES = NoteSettings()
_RECEIPTS = ReceiptSettings()


@dataclass(frozen=True, slots=True)
class NoteLimits:
    """Bytes of all notes, and of one user's."""

    total_bytes_max: int = _NOTES.total_mib << 20
    user_bytes_max: int = USER_NOTE_BYTES_MAX


@dataclass(frozen=True, slots=True)
class ReceiptLimits:
    """How long receipts are kept, how many per user, and their total bytes."""

    seconds_max: float = _RECEIPTS.keep_days * DAY
    user_receipts_max: int = USER_RECEIPTS_MAX
    total_bytes_max: int = _RECEIPTS.total_mib << 20


DEFAULT_NOTE_LIMITS = NoteLimits()
DEFAULT_RECEIPT_LIMITS = ReceiptLimits()
