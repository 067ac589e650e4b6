"""Which conversations are held out: they get no note although one was found, so that notes can be compared with none.

Pure. The arm depends on nothing but the unit, the salt and the share, so that every process decides alike, and no
conversation changes its arm from one question to the next.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from memory.model.recalled import RecallStatus

DRAW_BYTES = 8
ARM = "arm"  # the signal of a receipt that names the arm; only where a note was found
WITHHELD = "withheld"  # the signal that names why a note that was found did not go along
NOTE_TOKENS = "note_tokens"  # the signal with the tokens of a note of an arm, sent or not
CORRECTIONS, REPEATED_FACTS = "corrections", "repeated_facts"  # in the outcome of a receipt


class Arm(StrEnum):
    NOTED = "noted"
    HELD_OUT = "held_out"


class Withholding(StrEnum):
    """Why a note that was found does not go along."""

    SHADOW = "shadow"
    HELD_OUT = "held_out"

    @property
    def status(self) -> RecallStatus:
        """In shadow mode the operator has disabled notes; a held-out question is one that memory leaves alone."""
        return RecallStatus.DISABLED if self is Withholding.SHADOW else RecallStatus.SKIPPED


@dataclass(frozen=True, slots=True)
class HoldoutRule:
    """`share`, 0..1: of the units that are held out. 0: nothing is compared, and no arm is noted anywhere."""

    share: float = 0.0
    salt: str = ""

    def arm_of(self, unit: str) -> Arm | None:
        """The arm of this unit; None if nothing is compared."""
        if self.share <= 0.0:
            return None
        seed = f"{self.salt}\x1f{unit}".encode(errors="surrogatepass")
        drawn = int.from_bytes(hashlib.blake2b(seed, digest_size=DRAW_BYTES).digest(), "big")
        return Arm.HELD_OUT if drawn < self.share * 256**DRAW_BYTES else Arm.NOTED


NO_HOLDOUT = HoldoutRule()


@dataclass(frozen=True, slots=True)
class ComparedTurn:
    """A recorded turn, as far as the comparison needs it: no words, and a session that only tells sessions apart.

    `arm`: None where no new note was found. `note_tokens`: of the note, sent or not. `answer_tokens`: estimated; None
    without an answer. `corrections`, `repeated_facts`: what the worker counted in the user's messages.
    """

    session: str
    at: float
    arm: Arm | None = None
    note_tokens: int = 0
    answer_tokens: float | None = None
    corrections: int = 0
    repeated_facts: int = 0
