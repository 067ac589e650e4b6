"""Facts and what is known already → the changes that make both one.

The same statement updates the row that says it; what the user's words change supersedes the row that said otherwise;
everything else is a new row. Similarity decides nothing here: "I am allergic" and "I am not allergic" are neighbours.
Nothing is destroyed: a superseded row stays, says when and by what, and what else it held is carried into a row of
its own. Pure: no clock, no chance; ids are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from memory.learn.facts import Fact
from memory.learn.supersession import Verdict, compare, corrects, covers, may_change
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Role, Trust, statement_key

EVIDENCE_MAX = 5  # of one memory: the first and the latest ones; more would grow with every repetition
CONFIDENCE_STEP = 0.3  # of what is missing to certainty, at each repetition

Ids = Callable[[str], str]
"""An ordinal ("0", "1", "1/rest") to the id of a new row; the same at every attempt."""


@dataclass(slots=True)
class _Draft:
    """The rows as they will stand, and which of them are new or changed."""

    now: float
    rows: dict[str, Memory]
    changes: dict[str, ChangeKind] = field(default_factory=dict)

    def put(self, row: Memory, kind: ChangeKind) -> None:
        self.rows[row.id] = row
        self.changes[row.id] = ChangeKind.CREATE if self.changes.get(row.id) is ChangeKind.CREATE else kind

    def active(self, project_id: str) -> list[Memory]:
        """Of that very project, as they stand now."""
        rows = self.rows.values()
        return [r for r in rows if r.status is MemoryStatus.ACTIVE and r.project_id == project_id]


def consolidate(facts: Sequence[Fact], neighbours: Sequence[Memory], *, now: float, ids: Ids) -> list[Change]:
    """What to write, in order; each row once, as it will stand. Facts are of one user.

    `neighbours`: the user's memories that may say the same or be changed. `now`: system time, in Unix seconds.
    """
    draft = _Draft(now, {memory.id: memory for memory in neighbours})
    for ordinal, fact in enumerate(facts):
        _absorb(draft, fact, str(ordinal), ids)
    return [Change(kind, draft.rows[memory_id]) for memory_id, kind in draft.changes.items()]


def _absorb(draft: _Draft, fact: Fact, ordinal: str, ids: Ids) -> None:
    known = draft.active(fact.scope.project_id)
    key = statement_key(fact.content)
    same = next((row for row in known if statement_key(row.content) == key), None)
    if same is not None:
        draft.put(confirmed(same, fact.evidence, said_at=fact.said_at, now=draft.now), ChangeKind.UPDATE)
        return
    if fact.evidence.role == Role.ASSISTANT and any(covers(row.content, fact.evidence.quote) for row in known):
        return  # the assistant asked for what it had been told: nothing new
    row = _new_row(fact, ids(ordinal), draft.now)
    draft.put(row, ChangeKind.CREATE)
    for index, other in enumerate(known):
        _settle(draft, row, other, ids, f"{ordinal}/{index}")


def _settle(draft: _Draft, row: Memory, other: Memory, ids: Ids, ordinal: str) -> None:
    """Let the later of two rows supersede the earlier one, if its words change it. Later is when it was said."""
    newer, older = (row, other) if row.said_at >= other.said_at else (other, row)
    if not may_change(newer.content) or draft.rows[older.id].status is not MemoryStatus.ACTIVE:
        return
    if _turn_of(newer) == _turn_of(older) and not corrects(newer.content):
        return  # one breath: what it says holds together
    verdict = compare(newer.content, older.content)
    if verdict is None:
        return
    superseded = replace(
        draft.rows[older.id],
        status=MemoryStatus.SUPERSEDED,
        superseded_by=newer.id,
        superseded_at=draft.now,
        updated_at=draft.now,
        invalid_at=newer.said_at,
    )
    draft.put(superseded, ChangeKind.SUPERSEDE)
    if verdict.remainder:
        draft.put(_rest(older, verdict, ids(f"{ordinal}/rest"), draft.now), ChangeKind.CREATE)


def _turn_of(row: Memory) -> str:
    return row.evidence[-1].turn_id if row.evidence else row.id


def _rest(older: Memory, verdict: Verdict, memory_id: str, now: float) -> Memory:
    """What the superseded row said besides, word for word, with the same evidence and the same age."""
    return replace(older, id=memory_id, content=verdict.remainder, updated_at=now, created_at=older.created_at)


def _new_row(fact: Fact, memory_id: str, now: float) -> Memory:
    return Memory(
        id=memory_id,
        user_id=fact.scope.user_id,
        project_id=fact.scope.project_id,
        session_id=fact.scope.session_id,
        agent_id=fact.scope.agent_id,
        content=fact.content,
        created_at=now,
        updated_at=now,
        said_at=fact.said_at,
        valid_from=fact.said_at if fact.valid_from is None else fact.valid_from,
        expires_at=fact.expires_at,
        made_by=fact.made_by,
        trust=fact.trust or (Trust.EXPLICIT if fact.is_explicit else Trust.INFERRED),
        memory_type=fact.memory_type,
        category=fact.category,
        importance=fact.importance,
        confidence=fact.confidence,
        subject=fact.subject,
        evidence=(fact.evidence,),
    )


def confirmed(row: Memory, evidence: Evidence, *, said_at: float, now: float) -> Memory:
    """The row, said once more. The same evidence again only moves `updated_at`."""
    if evidence in row.evidence:
        return replace(row, updated_at=now)
    kept = (*row.evidence, evidence)
    bounded = kept if len(kept) <= EVIDENCE_MAX else (kept[0], *kept[-(EVIDENCE_MAX - 1) :])
    return replace(
        row,
        updated_at=now,
        said_at=max(row.said_at, said_at),
        confidence=row.confidence + (1.0 - row.confidence) * CONFIDENCE_STEP,
        evidence=bounded,
    )
