"""What became of what chats asked of memory, by the ids of their receipts: how many, and why not, never what. Pure.

The fields stand in receipts, and `docs/reference_pages/rest.md` lists them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from memory.model.claims import ORDERS, Claim
from memory.model.memories import Change
from memory.model.turns import Turn

Outcomes: TypeAlias = Mapping[str, Mapping[str, Any]]

ASKED = frozenset(("kept", "count", "withheld", "refused"))
"""The fields of which one is there if something was asked; other fields only count what was said."""


def refused_outcomes(refused: Iterable[tuple[Claim, str]], turns: Sequence[Turn]) -> Outcomes:
    """How many orders, and claims that the user asked to keep, were refused. `refused`: with the reason of each."""
    receipts = _receipts_of(turns)
    found: dict[str, Counter[str]] = {}
    for claim, reason in refused:
        receipt_id = receipts.get(claim.evidence.turn_id)
        if receipt_id and (claim.is_explicit or claim.act in ORDERS):
            found.setdefault(receipt_id, Counter())[reason] += 1
    return {receipt_id: {"refused": dict(reasons)} for receipt_id, reasons in found.items()}


def with_kept(
    outcomes: Outcomes, claims: Sequence[Claim], changes: Iterable[Change], turns: Sequence[Turn]
) -> Outcomes:
    """With how many of the claims that the user asked to keep stand in the rows of these changes."""
    receipts = _receipts_of(turns)
    rows = {(quoted.turn_id, quoted.words) for change in changes for quoted in change.memory.evidence}
    asked = [one.evidence for one in claims if one.is_explicit]
    kept = Counter(receipts.get(one.turn_id, "") for one in asked if (one.turn_id, one.words) in rows)
    return merged(outcomes, {receipt_id: {"kept": count} for receipt_id, count in kept.items() if receipt_id})


def merged(outcomes: Outcomes, more: Outcomes) -> Outcomes:
    return {one: {**outcomes.get(one, {}), **more.get(one, {})} for one in {**outcomes, **more}}


def _receipts_of(turns: Iterable[Turn]) -> dict[str, str]:
    return {turn.id: turn.receipt_id for turn in turns if turn.receipt_id}
