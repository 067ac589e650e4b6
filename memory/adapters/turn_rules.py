"""Rules of the turn log that hold on every adapter: which turns are learnt, the ids of windows, and the limits."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from memory.model import TurnStatus

TOKEN_BYTES = 4  # approximate UTF-8 bytes per token, to estimate how much is waiting
WINDOW_BYTES_MAX = 4 << 20  # of text in one window; a single turn is always included, however large
REASON_CHARACTERS_MAX = 500  # of the reason of a retry or dead letter
LOOK_BYTES_MAX = 8 << 20  # of turns read at a time; a single one is always read, however large
EARLIER_TURNS = 3  # of the waiting session, with which a new turn is compared
EARLIER_BYTES_MAX = 64 << 10  # larger earlier turns are left out: pasted text says little about the topic
SUMMARISED_TURN_BYTES_MAX = 256 << 10  # of one turn; a larger one is a pasted document
SUMMARISED_BYTES_MAX = 512 << 10  # of turns read for one summary: seconds of the trained reader
SHED_REASON = "shed: too many turns were waiting to be learnt, and these promised the least"

# turns of other statuses are recorded but not learnt
TAUGHT = {TurnStatus.CLOSED, TurnStatus.UNKNOWN, TurnStatus.FILLED_IN}


@dataclass(frozen=True, slots=True)
class LeaseOwner:
    """Who takes the lease, and until when. `process`: its name among the owners of the database."""

    token: str
    process: str
    until: float


def stage_after(status: TurnStatus) -> str:
    return "ready" if status in TAUGHT else "nothing"


def window_id_of(user_id: str, session_id: str, turn_ids: Iterable[str]) -> str:
    """The same turns of a session always give the same id, on every machine; ids of memories are derived from it."""
    seed = "\x1f".join((user_id, session_id, *turn_ids))
    return "w-" + hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()[:32]
