"""Withdraws what was learnt from abandoned turns, and restores it when the conversation continues from them again.

A memory that rests on abandoned turns alone is archived; one with other evidence loses theirs. A memory that such a row
had superseded becomes valid again, unless a later statement has superseded the row itself. Reflections follow their
grounds. Restoring is the reverse; evidence of a statement that is stored again meanwhile is added to that memory. What
a user asked to forget stays forgotten, and a confirmation keeps its effect. Pure: `now` is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from memory.model import BranchShift, BranchTurn, Evidence, Memory, MemoryStatus, Role, statement_key
from memory.model.derived import ARCHIVED, stands_on
from memory.model.withdrawn import BRANCH, Withdrawn, is_of_abandoned_branch, with_withdrawn, withdrawn_of
from memory.service.erasure import supported, without_evidence

T = TypeVar("T")


@dataclass(slots=True)
class _Rows:
    """All rows of the user, and which of them are changed."""

    now: float
    rows: dict[str, Memory]
    changed: set[str]

    def put(self, row: Memory) -> None:
        self.rows[row.id] = replace(row, updated_at=self.now)
        self.changed.add(row.id)


def shifted(memories: Iterable[Memory], shift: BranchShift, *, now: float) -> list[Memory]:
    """The rows that change, in their new state. `memories`: all of the user, of any status. Idempotent."""
    rows = _Rows(now, {memory.id: memory for memory in memories}, set())
    if shift.abandoned:
        _withdraw(rows, shift.abandoned)
    if shift.resumed:
        _restore(rows, shift.resumed)
    return [rows.rows[memory_id] for memory_id in sorted(rows.changed)]


def _withdraw(rows: _Rows, turns: Sequence[BranchTurn]) -> None:
    for row in list(rows.rows.values()):
        lost = _resting_on(row, row.evidence, turns)
        if not lost:
            continue
        if row.status is MemoryStatus.ARCHIVED:
            _note_lost(rows, row, lost)
            continue
        left = without_evidence(row, lost, now=rows.now)
        if left is None:
            rows.put(_archived(row, lost, rows.now))
        else:
            kept = withdrawn_of(left)
            rows.put(with_withdrawn(left, replace(kept, evidence=_joined(kept.evidence, lost))))
    archived = {row.id for row in rows.rows.values() if is_of_abandoned_branch(row)}
    for row in list(rows.rows.values()):
        if row.status is MemoryStatus.SUPERSEDED and row.superseded_by in archived:
            _release(rows, row)
    for row in list(rows.rows.values()):
        if row.status is MemoryStatus.ACTIVE and stands_on(row) & archived:
            rows.put(_archived(row, (), rows.now))


def _note_lost(rows: _Rows, row: Memory, lost: Sequence[Evidence]) -> None:
    """More of the evidence of an archived row was abandoned."""
    kept = withdrawn_of(row)
    turns = _joined(kept.turns, [quoted.turn_id for quoted in lost])
    if is_of_abandoned_branch(row) and turns != kept.turns:
        rows.put(with_withdrawn(row, replace(kept, turns=turns)))


def _archived(row: Memory, lost: Sequence[Evidence], now: float) -> Memory:
    """The row put away, with what it was. Its evidence stays in it."""
    turns = _joined((), [quoted.turn_id for quoted in lost])
    kept = replace(withdrawn_of(row), status=row.status.value, superseded_by=row.superseded_by, turns=turns)
    metadata = {**row.metadata, ARCHIVED: _reason(row, now)}
    return with_withdrawn(replace(_as_active(row), status=MemoryStatus.ARCHIVED, metadata=metadata), kept)


def _reason(row: Memory, now: float) -> dict[str, object]:
    before = {"before": row.metadata[ARCHIVED]} if ARCHIVED in row.metadata else {}
    return {"why": BRANCH, "at": now, **before}


def _release(rows: _Rows, row: Memory) -> None:
    """A row whose successor was withdrawn: valid again, or superseded by what superseded the successor."""
    first = rows.rows[row.superseded_by]
    kept = withdrawn_of(first)
    rows.put(with_withdrawn(first, replace(kept, replaced=tuple(dict.fromkeys((*kept.replaced, row.id))))))
    successor = _successor(rows, first)
    if successor is not None and successor.id != row.id:
        rows.put(replace(row, superseded_by=successor.id, invalid_at=successor.said_at))
        return
    metadata = {key: value for key, value in row.metadata.items() if key != "superseded_field"}
    rows.put(_as_active(replace(row, metadata=metadata)))


def _successor(rows: _Rows, row: Memory) -> Memory | None:
    """What superseded an archived row and was not withdrawn itself."""
    seen: set[str] = set()
    current: Memory | None = row
    while current is not None and is_of_abandoned_branch(current) and current.id not in seen:
        seen.add(current.id)
        current = rows.rows.get(withdrawn_of(current).superseded_by)
    is_found = current is not None and current.id not in seen and current.status is not MemoryStatus.ARCHIVED
    return current if is_found else None


def _as_active(row: Memory) -> Memory:
    """Rows that are superseded have no other end of validity."""
    return replace(row, status=MemoryStatus.ACTIVE, superseded_by="", superseded_at=None, invalid_at=None)


def _restore(rows: _Rows, turns: Sequence[BranchTurn]) -> None:
    restored: list[str] = []
    for row in list(rows.rows.values()):
        kept = withdrawn_of(row)
        returning = _resting_on(row, kept.evidence, turns)
        if is_of_abandoned_branch(row):
            if returning or _resting_on(row, row.evidence, turns):
                restored += _revived(rows, row, turns)
        elif returning:
            rows.put(_with_evidence(row, returning))
    for memory_id in sorted(restored, key=lambda one: rows.rows[one].said_at):
        _supersede_again(rows, rows.rows[memory_id])
    active = {row.id for row in rows.rows.values() if row.status is MemoryStatus.ACTIVE}
    for row in list(rows.rows.values()):
        if is_of_abandoned_branch(row) and stands_on(row) and stands_on(row) <= active:
            rows.put(_unarchived(row))


def _with_evidence(row: Memory, returning: Sequence[Evidence]) -> Memory:
    kept = withdrawn_of(row)
    left = tuple(quoted for quoted in kept.evidence if quoted not in returning)
    return with_withdrawn(_resting(row, _joined(row.evidence, returning)), replace(kept, evidence=left))


def _resting(row: Memory, evidence: tuple[Evidence, ...]) -> Memory:
    """The row with this evidence, and the confidence that belongs to it."""
    before, after = ({quoted.turn_id for quoted in one} for one in (row.evidence, evidence))
    return replace(row, evidence=evidence, confidence=supported(row.confidence, by=len(after) - len(before)))


def _revived(rows: _Rows, row: Memory, turns: Sequence[BranchTurn]) -> list[str]:
    """Its id, if it is restored. Where the same statement is stored already, only its evidence is added there."""
    kept = withdrawn_of(row)
    returning = _resting_on(row, (*row.evidence, *kept.evidence), turns)
    same = _same_statement(rows, row)
    if same is not None:
        if set(returning) - set(same.evidence):
            rows.put(_with_evidence(same, returning))
        return []
    standing = [quoted for quoted in row.evidence if quoted.turn_id not in kept.turns]
    every = _joined(row.evidence, kept.evidence)
    valid = tuple(quoted for quoted in every if quoted in returning or quoted in standing)
    left = tuple(quoted for quoted in every if quoted not in valid)
    successor = _successor(rows, row)
    revived = _resting(_unarchived(row), valid)
    if successor is not None:
        revived = _superseded_by(revived, successor, rows.now)
    rows.put(with_withdrawn(revived, Withdrawn(evidence=left, replaced=kept.replaced)))
    return [row.id]


def _superseded_by(row: Memory, successor: Memory, now: float) -> Memory:
    at = now if row.superseded_at is None else row.superseded_at
    return replace(
        row, status=MemoryStatus.SUPERSEDED, superseded_by=successor.id, superseded_at=at, invalid_at=successor.said_at
    )


def _unarchived(row: Memory) -> Memory:
    metadata = dict(row.metadata)
    reason = metadata.pop(ARCHIVED)
    if "before" in reason:
        metadata[ARCHIVED] = reason["before"]
    kept = withdrawn_of(row)
    return _as_active(with_withdrawn(replace(row, metadata=metadata), replace(kept, status="", superseded_by="")))


def _supersede_again(rows: _Rows, row: Memory) -> None:
    """A restored row supersedes again what it had replaced, and is superseded by what replaced that meanwhile."""
    kept = withdrawn_of(row)
    later = [rows.rows[row.superseded_by]] if row.superseded_by in rows.rows else []
    for older in (rows.rows[one] for one in kept.replaced if one in rows.rows):
        if older.status is MemoryStatus.ARCHIVED or older.said_at > row.said_at:
            continue
        successor = rows.rows.get(older.superseded_by)
        if successor is not None and successor.said_at < row.said_at:
            continue
        later += [] if successor is None else [successor]
        rows.put(_superseded_by(older, row, rows.now))
    row = with_withdrawn(row, replace(kept, replaced=()))
    rows.put(_superseded_by(row, min(later, key=lambda one: one.said_at), rows.now) if later else row)


def _same_statement(rows: _Rows, row: Memory) -> Memory | None:
    key = statement_key(row.content)
    for other in rows.rows.values():
        is_valid = other.status is MemoryStatus.ACTIVE and other.project_id == row.project_id
        if is_valid and other.id != row.id and statement_key(other.content) == key:
            return other
    return None


def _resting_on(row: Memory, evidence: Collection[Evidence], turns: Sequence[BranchTurn]) -> list[Evidence]:
    """The evidence that comes from these turns; a question, if one of them said yes to it."""
    ids = {turn.turn_id for turn in turns}
    asked = {turn.parent_id for turn in turns if turn.at == row.said_at}
    return [e for e in evidence if e.turn_id in ids or (e.role == Role.ASSISTANT and e.turn_id in asked)]


def _joined(first: Sequence[T], more: Sequence[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *more)))
