"""Facts and what is known already → the changes that make both one.

The same statement updates the row that says it; what the user's words change supersedes the row that said otherwise;
everything else is a new row. Similarity decides nothing here: "I am allergic" and "I am not allergic" are neighbours.
Nothing is destroyed: a superseded row stays, says when and by what, and what else it held is carried into a row of
its own. Pure: no clock, no chance; ids are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from memory.learn.changes.amending import amended, is_amendment
from memory.learn.changes.supersession import (
    Verdict,
    compare,
    corrects,
    may_change,
    rests_on_an_unnamed_plan,
    says_change,
)
from memory.learn.corrections.feedback import (
    Feedback,
    Opinion,
    about,
    asks_after,
    is_about,
    lowered,
    raised,
    said_instead,
)
from memory.learn.facts import Fact
from memory.model import Change, ChangeKind, Evidence, Memory, MemoryStatus, Role, Trust, statement_key

EVIDENCE_MAX = 5  # of one memory: the first and the latest ones; more would grow with every repetition
AVOID_CHARACTERS_MAX = 500  # of what a correction says is wrong
AMENDED_SECONDS_MAX = 600.0  # between a statement and the "hang on, it's four" that means it
CONFIDENCE_STEP = 0.3  # of what is missing to certainty, at each repetition

Ids = Callable[[str], str]
"""An ordinal ("0", "1", "1/…/rest") to the id of a new row; the same at every attempt."""


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


NOTHING: Mapping[Any, Verdict] = MappingProxyType({})
Pair: TypeAlias = tuple[int, str]
"""The index of a fact, and the id of a memory."""


def consolidate(
    facts: Sequence[Fact],
    neighbours: Sequence[Memory],
    *,
    now: float,
    ids: Ids,
    said_back: Sequence[Feedback] = (),
    changed: Mapping[Pair, Verdict] = NOTHING,
    done: Collection[int] | None = None,
) -> list[Change]:
    """What to write, in order; each row once, as it will stand. Facts are of one user.

    `neighbours`: the user's memories that may say the same or be changed. `now`: system time, in Unix seconds.
    `said_back`: what the user said about answers. `changed`: how a fact changes a memory, as somebody who was asked
    said and rules checked; what keeps them apart by trust, project or time goes before it.
    `done`: at a repeat, indices of facts to leave out; rows that an earlier attempt wrote are compared with all others.
    """
    draft = _Draft(now, {memory.id: memory for memory in neighbours})
    heeded = _heed(draft, facts, said_back, ids)
    for ordinal, fact in enumerate(facts):
        if ordinal in heeded.taken or (done is not None and ordinal in done):
            continue
        ruled = {memory_id: verdict for (index, memory_id), verdict in changed.items() if index == ordinal}
        meant, amends = _meant(draft, fact)
        _absorb(draft, meant, str(ordinal), ids, ruled=ruled, is_repeat=done is not None)
        for wrong in (*amends, *heeded.corrected.get(ordinal, ())):
            _correct(draft, meant, wrong)
    return [Change(kind, draft.rows[memory_id]) for memory_id, kind in draft.changes.items()]


@dataclass(slots=True)
class _Heeded:
    """By index of a fact, the ids of what it puts right; and facts that were said in better words already."""

    corrected: dict[int, list[str]] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)


def _heed(draft: _Draft, facts: Sequence[Fact], said_back: Sequence[Feedback], ids: Ids) -> _Heeded:
    """Confidence up or down, and what is right instead."""
    heeded = _Heeded()
    for number, feedback in enumerate(said_back):
        for memory in about(feedback, draft.active(feedback.scope.project_id)):
            if feedback.opinion is Opinion.RIGHT:
                surer = raised(memory, now=draft.now)
                if surer is not None:
                    draft.put(surer, ChangeKind.UPDATE)
            else:
                _put_right(draft, facts, feedback, memory, heeded, f"back/{number}/{memory.id}", ids)
    return heeded


def _put_right(
    draft: _Draft, facts: Sequence[Fact], feedback: Feedback, wrong: Memory, heeded: _Heeded, ordinal: str, ids: Ids
) -> None:
    same_turn = [index for index, fact in enumerate(facts) if fact.evidence.turn_id == feedback.turn_id]
    instead = [index for index in same_turn if is_about(facts[index], wrong)]
    if instead:
        heeded.corrected.setdefault(instead[0], []).append(wrong.id)
        return
    fact = said_instead(feedback, wrong)
    if fact is None:
        draft.put(lowered(wrong, now=draft.now), ChangeKind.UPDATE)
        return
    heeded.taken |= {index for index in same_turn if facts[index].evidence.quote in feedback.said}
    _absorb(draft, fact, ordinal, ids)
    _correct(draft, fact, wrong.id)


def _meant(draft: _Draft, fact: Fact) -> tuple[Fact, list[str]]:
    """What the fact says with the statement right before it in its chat, if it puts that right; and that one's id."""
    if not is_amendment(fact.content) or not fact.scope.session_id:
        return fact, []
    of_chat = [r for r in draft.active(fact.scope.project_id) if r.session_id == fact.scope.session_id]
    learnt = next((row for row in of_chat if fact.evidence in row.evidence), None)
    if learnt is not None:  # at a repeat
        return replace(fact, content=learnt.content), []
    since = fact.said_at - AMENDED_SECONDS_MAX
    before = [row for row in of_chat if since <= row.said_at < fact.said_at]
    latest = [row for row in before if row.said_at == max(one.said_at for one in before)]
    anew = {row.id: content for row in latest if (content := amended(row.content, fact.content))}
    if len(anew) != 1:
        return fact, []
    ((wrong, content),) = anew.items()
    return replace(fact, content=content, subject=draft.rows[wrong].subject, trust=Trust.EXPLICIT), [wrong]


def _correct(draft: _Draft, fact: Fact, wrong_id: str) -> None:
    """What the fact says takes the place of what was wrong, and says what to avoid."""
    key, wrong = statement_key(fact.content), draft.rows[wrong_id]
    right = next((r for r in draft.active(fact.scope.project_id) if statement_key(r.content) == key), None)
    if right is None or right.id == wrong_id or right.said_at < wrong.said_at:
        return
    draft.put(_as_correction(right, wrong.content), ChangeKind.UPDATE)
    if wrong.status is MemoryStatus.ACTIVE:
        draft.put(_superseded(wrong, right, draft.now), ChangeKind.SUPERSEDE)


def _as_correction(row: Memory, wrong: str) -> Memory:
    avoid = wrong[:AVOID_CHARACTERS_MAX]
    trust = row.trust if row.trust is Trust.BOOTSTRAPPED else Trust.EXPLICIT
    return replace(row, category="correction", trust=trust, metadata={**row.metadata, "avoid": avoid})


def _superseded(older: Memory, newer: Memory, now: float) -> Memory:
    return replace(
        older,
        status=MemoryStatus.SUPERSEDED,
        superseded_by=newer.id,
        superseded_at=now,
        updated_at=now,
        invalid_at=newer.said_at,
    )


def _absorb(
    draft: _Draft,
    fact: Fact,
    ordinal: str,
    ids: Ids,
    *,
    ruled: Mapping[str, Verdict] = NOTHING,
    is_repeat: bool = False,
) -> None:
    known = draft.active(fact.scope.project_id)
    key = statement_key(fact.content)
    same = next((row for row in known if statement_key(row.content) == key), None)
    if same is not None:
        draft.put(confirmed(same, fact.evidence, said_at=fact.said_at, now=draft.now), ChangeKind.UPDATE)
        if not is_repeat:
            return
    elif fact.evidence.role == Role.ASSISTANT and asks_after(fact.evidence.quote, known):
        return  # the assistant asked for what it had been told: nothing new
    else:
        draft.put(_new_row(fact, ids(ordinal), draft.now), ChangeKind.CREATE)
    row = draft.rows[same.id if same is not None else ids(ordinal)]
    for other in known:
        if other.id != row.id:
            _settle(draft, row, other, ids, f"{ordinal}/{other.id}", ruled=ruled.get(other.id))


def _settle(draft: _Draft, row: Memory, other: Memory, ids: Ids, ordinal: str, *, ruled: Verdict | None) -> None:
    """Let the later of two rows supersede the earlier one, if its words change it. Later is when it was said."""
    newer, older = (row, other) if row.said_at >= other.said_at else (other, row)
    ruled = ruled if newer.id == row.id else None
    if not (ruled or may_change(newer.content)) or draft.rows[older.id].status is not MemoryStatus.ACTIVE:
        return
    if not _outranks(newer, older):
        return
    if _turn_of(newer) == _turn_of(older) and not corrects(newer.content):
        return  # one breath: what it says holds together
    verdict = compare(newer.content, older.content) or ruled
    if verdict is None or _may_mean_another(draft, newer, older):
        return
    draft.put(_superseded(draft.rows[older.id], newer, draft.now), ChangeKind.SUPERSEDE)
    if newer.id == row.id and corrects(newer.content):
        draft.put(_as_correction(draft.rows[newer.id], older.content), ChangeKind.UPDATE)
    if verdict.remainder:
        draft.put(_rest(older, verdict, ids(f"{ordinal}/rest"), draft.now), ChangeKind.CREATE)


def _may_mean_another(draft: _Draft, newer: Memory, older: Memory) -> bool:
    """ "My trip is cancelled", once there are two trips: neither of them falls."""
    if not rests_on_an_unnamed_plan(newer.content, older.content):
        return False
    known = [row for row in draft.active(newer.project_id) if row.said_at <= newer.said_at and row.id != newer.id]
    return any(rests_on_an_unnamed_plan(newer.content, row.content) for row in known if row.id != older.id)


def _outranks(newer: Memory, older: Memory) -> bool:
    """What was said in passing moves what was given or asked for only by words of change; what was derived, never."""
    if _TRUST[newer.trust] <= max(_TRUST[older.trust], _TRUST[Trust.EXPLICIT]):
        return True
    return newer.trust is Trust.INFERRED and says_change(newer.content)


_TRUST = {trust: rank for rank, trust in enumerate(Trust)}


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
