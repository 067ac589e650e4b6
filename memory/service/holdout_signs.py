"""Counts, by arm, what users say after a note was found for them: corrections, repeated facts, follow-ups.

Runs after a window is learnt and only where conversations are held out. A failure costs these counts, never learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from memory.chat.token_estimate import estimated_tokens
from memory.errors import Unavailable
from memory.model import Act, Change, ChangeKind, Claim, Receipt, Turn
from memory.model.arms import ARM, CORRECTIONS, REPEATED_FACTS, Arm
from memory.ports import ConversationRecord, Lease, Receipts
from memory.runtime.metrics import Metrics

TURNS_BACK_MAX = 50  # of the session before the window, searched for its first question with an arm


@dataclass(frozen=True, slots=True)
class TurnSigns:
    """What the user said in one turn: `repeated_facts` were already in memory."""

    corrections: int = 0
    repeated_facts: int = 0


def signs_of(claims: Sequence[Claim], changes: Sequence[Change], turn: Turn) -> TurnSigns:
    """Pure. A fact is repeated if this turn became further evidence of a memory that was there before."""
    corrections = sum(claim.act is Act.CORRECT and claim.evidence.turn_id == turn.id for claim in claims)
    repeated = sum(
        change.kind is ChangeKind.UPDATE and any(quoted.turn_id == turn.id for quoted in change.memory.evidence)
        for change in changes
    )
    return TurnSigns(corrections, repeated)


def arm_in(receipt: Receipt | None) -> Arm | None:
    said = None if receipt is None else receipt.signals.get(ARM)
    return Arm(said) if said in tuple(Arm) else None


class HoldoutSigns:
    """Adds signs to receipts, where the report finds them, and to metrics."""

    def __init__(self, *, turn_log: ConversationRecord, receipts: Receipts, metrics: Metrics) -> None:
        self._turn_log = turn_log
        self._receipts = receipts
        self._metrics = metrics

    async def record(self, lease: Lease, claims: Sequence[Claim], changes: Sequence[Change]) -> None:
        """Never raises. A window that is learnt again is counted again in metrics, and once in receipts."""
        with suppress(Unavailable):
            arm = await self._arm_of_session(await self._turn_log.context(lease, limit=TURNS_BACK_MAX))
            for turn in lease.turns:
                receipt = await self._receipt(turn)
                is_follow_up, arm = arm is not None, arm or arm_in(receipt)
                if arm is None:
                    continue
                signs = signs_of(claims, changes, turn) if is_follow_up else TurnSigns()
                if receipt is not None and signs != TurnSigns():
                    counted = {CORRECTIONS: signs.corrections, REPEATED_FACTS: signs.repeated_facts}
                    await self._receipts.amend(lease.user_id, receipt.id, {**receipt.outcome, **counted})
                self._count(arm, turn, signs, is_follow_up=is_follow_up)

    async def _arm_of_session(self, turns: Sequence[Turn]) -> Arm | None:
        for turn in turns:
            if arm := arm_in(await self._receipt(turn)):
                return arm
        return None

    async def _receipt(self, turn: Turn) -> Receipt | None:
        return await self._receipts.get(turn.scope.user_id, turn.receipt_id) if turn.receipt_id else None

    def _count(self, arm: Arm, turn: Turn, signs: TurnSigns, *, is_follow_up: bool) -> None:
        self._metrics.holdout_turns.labels(arm).inc()
        self._metrics.holdout_signs.labels(arm, "follow_up").inc(is_follow_up)
        self._metrics.holdout_signs.labels(arm, "correction").inc(signs.corrections)
        self._metrics.holdout_signs.labels(arm, "repeated_fact").inc(signs.repeated_facts)
        if turn.answer:
            self._metrics.holdout_answer_tokens.labels(arm).observe(estimated_tokens(turn.answer))
